"""Jobs whose programs import nvshmem.core, that of weft, and meet by a unique id, which PE 0 passes on in a file."""

HEAP = {"NVSHMEM_HEAP_KIND": "SYSMEM"}
BEGIN = """
        import weft.nvshmem
        weft.nvshmem.install()
        import nvshmem.core as nvshmem
        from nvshmem.core import SignalOp, ComparisonType, Teams

        def begin():
            nvshmem.init(uid=id_of_file(), rank=int(os.environ["WEFT_PE"]), nranks=int(os.environ["WEFT_PE_COUNT"]), initializer_method="uid")
            return nvshmem.my_pe(), nvshmem.n_pes()

        def id_of_file():
            path = os.environ["ID_FILE"]
            uid = nvshmem.get_unique_id(empty=os.environ["WEFT_PE"] != "0")
            if os.environ["WEFT_PE"] == "0":
                with open(path + ".new", "wb") as file:
                    file.write(bytes(uid))
                os.rename(path + ".new", path)
            while not os.path.exists(path):
                time.sleep(0.01)
            uid._data.view(numpy.int8)[:] = numpy.fromfile(path, numpy.int8)
            return uid
"""


def ok(programs, folder, count, body, **variables):
    return programs.ok(count, BEGIN + body, ID_FILE=str(folder / "id"), **HEAP | variables)
