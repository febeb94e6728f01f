"""Adds one of each kind that docs/DEVELOPING.md describes, in a copy of the tree: see test_how_to_add.py."""
