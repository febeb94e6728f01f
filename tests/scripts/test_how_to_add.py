"""docs/DEVELOPING.md, "How to add": with changes to the files of an entry's list alone, the thing is there and works; with
one file fewer it is not. So a list is as long as it must be."""
import functools
import pathlib
import sys

import pytest

from how_to_add import kinds, page
from how_to_add.scratch import Failed, Scratch

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))

from checks import Tree  # noqa: E402: the path above comes first

LISTS = {title: [path.replace("NAME", kinds.NAME) for path in paths] for title, paths in page.lists(PROJECT).items()}


@pytest.fixture(scope="module")
def scratch(build_dir, tmp_path_factory):
    return Scratch(PROJECT, Tree(PROJECT).files, build_dir, tmp_path_factory.mktemp("how_to_add"))


@pytest.fixture(autouse=True)
def clean(scratch):
    yield
    scratch.reset()


def add(scratch, kind, files):
    """Changes what is in `files`, and nothing else."""
    for path, change in kind.changes.items():
        if path in files:
            example = kinds.EXAMPLES.get(path, path)
            scratch.write(path, change(scratch.read(example) if (scratch.tree / example).exists() else ""))
    for path, write in kind.generated.items():
        if path in files:
            write(scratch)


def test_each_kind_has_its_list():
    assert set(LISTS) == set(kinds.KINDS)


@pytest.fixture(scope="module")
def add_all(scratch):
    """add_all(title): adds what the page lists, and checks it; once for each title."""

    @functools.cache
    def failure_of(title):
        kind = kinds.KINDS[title]
        try:
            add(scratch, kind, LISTS[title])
            kind.check(scratch)
        except Failed as failed:
            return str(failed)
        finally:
            scratch.reset()
        return None

    def add_all_of(title):
        if (failure := failure_of(title)) is not None:
            pytest.fail(failure)

    return add_all_of


@pytest.mark.parametrize("title", kinds.KINDS)
def test_the_pages_list_of_files_is_enough(add_all, title):
    kind = kinds.KINDS[title]
    assert sorted(LISTS[title]) == sorted([*kind.changes, *kind.generated])
    add_all(title)


@pytest.mark.parametrize("title, left_out", [(title, path) for title, paths in LISTS.items() for path in paths])
def test_a_list_without_one_of_its_files_is_too_short(scratch, add_all, title, left_out):
    add_all(title)  # else it would fail for another reason
    kind = kinds.KINDS[title]
    with pytest.raises(Failed):
        add(scratch, kind, [path for path in LISTS[title] if path != left_out])
        kind.check(scratch)
