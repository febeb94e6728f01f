"""A batch job that Slurm ends by its time limit. The last file of this folder: Slurm looks at limits twice a minute."""
import re


def test_a_batch_job_whose_time_is_over_leaves_nothing(overdue):
    text = overdue.assert_ended("TIMEOUT")
    assert re.search(r"CANCELLED .* DUE TO TIME LIMIT", text), text
