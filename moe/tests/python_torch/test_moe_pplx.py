"""The names of pplx_kernels over weft.moe: the calls that serving programs make, against a model in one piece."""
import pytest

MODEL = """
    import weft.moe.pplx
    weft.moe.pplx.install()
    import pplx_kernels as pplx
    from pplx_kernels.nvshmem import nvshmem_alloc_empty_unique_id, nvshmem_finalize, nvshmem_get_unique_id, nvshmem_init
    torch.set_num_threads(1)
    MOST, HIDDEN, EXPERTS, TOPK = 10, 256, 7, 3

    def inputs(group):
        random = torch.Generator().manual_seed(group)
        x = torch.randn(MOST - group, HIDDEN, generator=random).bfloat16()
        ids = torch.stack([torch.randperm(EXPERTS, generator=random)[:TOPK] for _ in range(len(x))])
        return x, ids, torch.rand(len(x), TOPK, generator=random)

    def make(job, dp_size=1, element=2, scale_bytes=0):
        return pplx.AllToAll.internode(max_num_tokens=MOST, num_experts=EXPERTS, experts_per_token=TOPK, rank=job.pe,
                                       world_size=job.pe_count, dp_size=dp_size, hidden_dim=HIDDEN,
                                       hidden_dim_bytes=HIDDEN * element, hidden_dim_scale_bytes=scale_bytes)

    def mine(job):
        share, longer = divmod(EXPERTS, job.pe_count)
        first = job.pe * share + min(job.pe, longer)
        return range(first, first + share + (job.pe < longer))

    def out(job, groups, columns, dtype):
        return torch.full((len(mine(job)), MOST * groups, columns), 99, dtype=torch.float32).to(dtype)

    # Rows of an expert in any order: sorted by their bytes.
    def same_rows(a, b):
        key = lambda rows: sorted(row.contiguous().view(torch.uint8).numpy().tobytes() for row in rows)
        return key(a) == key(b)
"""


@pytest.mark.parametrize("dp_size, exact, can_be", [(1, True, True), (2, False, True), (1, False, True), (1, True, False)])
def test_dispatch_and_combine(programs, dp_size, exact, can_be):
    """It cannot be exact between nodes on GPUs."""
    programs.ok(4, MODEL + f"""
    weft.moe.Exchange.combines_exactly = {can_be}
    pplx.install(exact={exact})
    DP = {dp_size}
    with weft.init() as job:
        groups = job.pe_count // DP
        everyone = [inputs(group) for group in range(groups)]
        x, ids, weights = everyone[job.pe // DP]
        ata = make(job, DP)
        for bound in (None, torch.tensor([4], dtype=torch.uint32), None):
            most = len(x) if bound is None else 4
            counts, rows = torch.empty(len(mine(job)), dtype=torch.int32), out(job, groups, HIDDEN, torch.bfloat16)
            ata.dispatch(out_expert_num_tokens=counts, out_expert_x=rows, out_expert_x_scale=None, dp_x=x, dp_x_scale=None,
                         indices=ids.to(torch.uint32), bound_m=bound)
            for i, expert in enumerate(mine(job)):
                wanted = torch.cat([ex[(ei == expert).any(1) & (torch.arange(len(ex)) < (4 if bound is not None else 99))]
                                    for ex, ei, _ in everyone])
                assert counts[i] == len(wanted) and same_rows(rows[i, :counts[i]], wanted), (i, counts)
                rows[i] = rows[i] * (expert + 1)
            sums = torch.full((MOST, HIDDEN), 7.0, dtype=torch.bfloat16)
            ata.combine(out_tokens=sums, indices=ids.to(torch.uint32), weights=weights, expert_y=rows, bound_m=bound)
            exact = x.float() * (weights * (ids + 1)).sum(1, keepdim=True)
            exact[most:] = 0
            assert torch.allclose(sums[:len(x)].float(), exact, rtol=0.02, atol=0.05)
            assert (sums[len(x):] == 7).all()
        ata.destroy()
    """)


@pytest.mark.parametrize("columns", [2, 4])
def test_fp8_with_scales_of_blocks_and_of_tokens_in_two_steps(programs, columns):
    programs.ok(3, MODEL + f"""
    COLUMNS = {columns}
    with weft.init() as job:
        def codes(pe):
            x, ids, weights = inputs(pe)
            random = torch.Generator().manual_seed(100 + pe)
            scales = torch.rand(len(x), COLUMNS, generator=random)
            return x.to(torch.float8_e4m3fn), scales, ids, weights
        everyone = [codes(pe) for pe in range(job.pe_count)]
        x, scales, ids, weights = everyone[job.pe]
        ata = make(job, element=1, scale_bytes=16)
        counts = torch.empty(len(mine(job)), dtype=torch.int32)
        rows, row_scales = out(job, 3, HIDDEN, torch.float8_e4m3fn), out(job, 3, 4, torch.float32)
        for call in ((True, False), (False, True)):
            ata.dispatch(counts, rows, row_scales, x, scales, ids.to(torch.int32), None, *call)
        for i, expert in enumerate(mine(job)):
            chosen = [(ei == expert).any(1) for _, _, ei, _ in everyone]
            both = [torch.cat([part[take].view(torch.uint8) for part, take in zip(parts, chosen)])
                    for parts in ([e[0] for e in everyone], [e[1] for e in everyone])]
            got = torch.cat([rows[i, :counts[i]].view(torch.uint8),
                             row_scales[i, :counts[i], :COLUMNS].contiguous().view(torch.uint8)], 1)
            assert same_rows(got, torch.cat(both, 1))
        y = out(job, 3, HIDDEN, torch.float16)
        for i, expert in enumerate(mine(job)):
            y[i] = expert + 1
        sums = torch.empty(len(x), HIDDEN, dtype=torch.float16)
        for call in ((True, False), (False, True)):
            ata.combine(sums, ids, weights, y, None, *call)
        assert torch.allclose(sums.float(), (weights * (ids + 1)).sum(1, keepdim=True).expand_as(sums), rtol=0.01)
    """)


def test_workers_that_were_started_by_the_program_meet_by_an_id(programs):
    programs.ok(1, MODEL + """
    import pathlib, tempfile
    folder = pathlib.Path(tempfile.mkdtemp())
    children = []
    for rank in range(2):
        children.append(os.fork())
        if children[-1]:
            continue
        if rank == 0:
            uid = nvshmem_get_unique_id()
            (folder / "part").write_bytes(bytes(uid.numpy()))
            (folder / "part").rename(folder / "id")
        else:
            uid = nvshmem_alloc_empty_unique_id()
            while not (folder / "id").exists():
                pass
            uid.copy_(torch.frombuffer(bytearray((folder / "id").read_bytes()), dtype=torch.uint8))
        assert nvshmem_init(uid, rank, 2) == 0
        ata = pplx.AllToAll.intranode(max_num_tokens=MOST, num_experts=2, experts_per_token=1, rank=rank, world_size=2, dp_size=1,
                                      hidden_dim=64, hidden_dim_bytes=128, hidden_dim_scale_bytes=0)
        counts, rows = torch.empty(1, dtype=torch.int32), torch.empty(1, 2 * MOST, 64, dtype=torch.bfloat16)
        ata.dispatch(counts, rows, None, torch.full((3, 64), rank + 1.0).bfloat16(), None,
                     torch.tensor([[1 - rank]] * 3, dtype=torch.uint32))
        assert counts.tolist() == [3] and (rows[0, :3] == 2 - rank).all()
        nvshmem_finalize()
        os._exit(0)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    """)


@pytest.mark.parametrize("change, sentence", [
    ("x = x[:, :128]", "dp_x has the shape (10, 128), and (10, 256) is needed"),
    ("x = x.float()", "a row of dp_x has 1024 bytes, and hidden_dim_bytes is 512"),
    ("rows = rows[:, :7]", "out_expert_x has the shape (4, 7, 256), and [4 local experts, >= 20 rows, columns] is needed"),
    ("ids = ids[:4]", "dp_x has the shape (10, 256), and (4, 256) is needed"),
])
def test_wrong_arguments_of_one_rank_are_named_on_both(programs, change, sentence):
    programs.ok(2, MODEL + f"""
    with weft.init() as job:
        x, ids, weights = inputs(0)
        rows, counts, ata = out(job, 2, HIDDEN, torch.bfloat16), torch.empty(len(mine(job)), dtype=torch.int32), make(job)
        good = (x, ids, rows)
        if job.pe == 0:
            {change}
        try:
            ata.dispatch(counts, rows, None, x, None, ids)
        except weft.Error as error:
            assert ({sentence!r} if job.pe == 0 else "PE 0 could not take part") in str(error), error
        else:
            raise AssertionError("no error")
        x, ids, rows = good
        ata.dispatch(counts, rows, None, x, None, ids)
        assert counts.sum() == sum((2 * (ids == expert)).sum() for expert in mine(job))
    """)


def test_a_rank_of_another_job_and_a_combine_without_dispatch_are_refused(programs):
    programs.ok(1, MODEL + """
    with weft.init() as job:
        for named, words in ((dict(rank=1, world_size=2), "rank 1 of 2 was given, and this is PE 0 of 1"),
                             (dict(rank=0, world_size=1, dp_size=2), "dp_size is 2, and the 1 ranks are not a multiple")):
            try:
                pplx.AllToAll.intranode(**(dict(max_num_tokens=4, num_experts=2, experts_per_token=1, dp_size=1, hidden_dim=64,
                                                hidden_dim_bytes=128, hidden_dim_scale_bytes=0) | named))
            except weft.InvalidArgument as error:
                assert words in str(error), error
            else:
                raise AssertionError("no error")
        ata = make(job)
        try:
            ata.combine(torch.empty(3, HIDDEN), torch.zeros(3, TOPK, dtype=torch.int64), torch.zeros(3, TOPK),
                        torch.empty(EXPERTS, MOST, HIDDEN))
        except weft.InvalidArgument as error:
            assert "there is none of 3 tokens" in str(error), error
        else:
            raise AssertionError("no error")
    """)


def test_it_takes_pplx_kernels_own_arguments(programs):
    """By position and by name: max_sm_count stands tenth in internode, and eleventh, behind group_name, in intranode."""
    programs.ok(2, MODEL + """
    with weft.init() as job:
        sizes = (MOST, EXPERTS, TOPK, job.pe, job.pe_count, 1, HIDDEN, 2 * HIDDEN, 0)
        for ata in (pplx.AllToAll.internode(*sizes, 16), pplx.AllToAll.intranode(*sizes, "default", 16),
                    pplx.AllToAll.internode(*sizes, max_sm_count=16), pplx.AllToAll.intranode(*sizes, group_name="default", max_sm_count=16)):
            x, ids, weights = inputs(job.pe)
            counts, rows = torch.empty(len(mine(job)), dtype=torch.int32), out(job, 2, HIDDEN, torch.bfloat16)
            ata.dispatch(counts, rows, None, x, None, ids, None)
            y = torch.empty(len(x), HIDDEN, dtype=torch.bfloat16)
            ata.combine(y, ids, weights, torch.nan_to_num(rows), None)
            assert torch.allclose(y.float(), x.float() * weights.sum(1, keepdim=True), rtol=0.03, atol=0.05)
            assert ata._sizes["blocks"] == 16
            ata.destroy()
        for call, text in ((lambda: pplx.AllToAll.internode(*sizes, "default"), "give a number of multiprocessors"),
                           (lambda: pplx.AllToAll.internode(*sizes, max_sms=3), "pplx_kernels.AllToAll.internode: got an unexpected keyword argument 'max_sms'")):
            try:
                call()
            except (weft.InvalidArgument, TypeError) as error:
                assert text in str(error) and "Sizes" not in str(error), str(error)
            else:
                raise AssertionError(text)
    """)


def test_its_timeout_is_that_of_install(programs):
    programs.ok(2, MODEL + """
    pplx.install(timeout=1.5)
    with weft.init() as job:
        x, ids, weights = inputs(job.pe)
        ata = make(job)
        if job.pe == 1:  # makes the exchange, and does not come
            ata._exchange(x.device, "fp8_e4m3", ata._row_bytes)
        else:
            try:
                ata.dispatch(torch.empty(len(mine(job)), dtype=torch.int32), out(job, 2, HIDDEN, torch.bfloat16), None, x, None, ids, None)
            except weft.Timeout as error:
                assert "nothing came from PE 1 of 2 within 1.5 s" in str(error), str(error)
            else:
                raise AssertionError("PE 1 came")
        weft.barrier_all()
    """)
