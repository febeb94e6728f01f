"""The generator of Weft's, OpenSHMEM's and NVSHMEM's functions. scripts/generate_interfaces calls it.

An interface is a module here, NAME.py, with its functions in NAME_table.py. It has headers(): the text of each public
header, by its path in the tree; and sources(): the text of each file that is made at build, by its path in a folder of the build.
core.py is what all share, c_types.py the names of C's types."""
