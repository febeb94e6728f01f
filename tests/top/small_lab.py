"""The lab in which tests watch real jobs: what its fixture `lab` (conftest.py) makes, and how many PEs run there."""

HOSTS, NICS, PES = 2, 4, 4
