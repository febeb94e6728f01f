"""weft.init(heap_size=): the size of the symmetric heap."""


def test_the_heap_has_the_size_that_was_given(programs):
    """Beside WEFT_HEAP_SIZE, which stays as it was."""
    programs.ok(2, """
    for given, fits in ((64 << 20, 40 << 20), ("48M", 30 << 20), ("0.0625g", 40 << 20), (None, 4 << 20)):
        with weft.init(heap_size=given) as job:
            weft.zeros(fits, "uint8")
        assert os.environ["WEFT_HEAP_SIZE"] == "8M"
    for wrong in (0, -1, "lots", "0M", 1.5, True, "1X", b"1M"):
        try:
            weft.init(heap_size=wrong)
        except weft.InvalidArgument as error:
            assert f"heap_size is {wrong!r}; give bytes" in str(error)
        else:
            raise AssertionError(wrong)
    """)


def test_heaps_of_different_sizes_are_refused_by_the_arguments_name(programs):
    done = programs.pes(2, """
    weft.init(heap_size=(8 + int(os.environ["WEFT_PE"])) << 20)
    """)
    assert done.status != 0 and "heap_size of weft.init, or WEFT_HEAP_SIZE must be the same on all PEs" in done.err, done.err
