"""weft.torch on the CPU: tensors over symmetric memory, operators in graphs, gradients, shapes of torch's symm_mem."""


import pytest


def test_a_tensor_is_the_symmetric_memory_itself(programs):
    programs.ok(2, """
        with weft.init() as job:
            array = weft.zeros((3, 4), "bfloat16")
            tensor = torch.from_dlpack(array)
            assert tensor.data_ptr() == array.address and tensor.dtype == torch.bfloat16 and tensor.shape == (3, 4)
            for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64):
                assert weft.torch.zeros(5, dtype=dtype).dtype == dtype
            inbox = weft.torch.zeros(2, 3)
            weft.put(inbox, torch.full((2, 3), job.pe + 1.0), 1 - job.pe)
            weft.barrier_all()
            assert inbox.sum() == 6 * (2 - job.pe)
            back = torch.zeros(3)
            weft.get(back, inbox[1], 1 - job.pe)
            assert (back == job.pe + 1).all()
            weft.register(back)
            weft.put(back, torch.full((3,), 9.0), 1 - job.pe)
            weft.barrier_all()
            assert back.sum() == 27
            weft.unregister(back)
    """)


def test_free_and_views_of_peers(programs):
    programs.ok(2, """
        with weft.init() as job:
            tensor = weft.torch.zeros(4, 5)
            handle = weft.torch.rendezvous(tensor[1:3])
            assert (handle.rank, handle.world_size) == (job.pe, 2)
            handle.get_buffer(1 - job.pe)[:] = job.pe + 1
            handle.barrier()
            assert (tensor[1:3] == 2 - job.pe).all() and tensor[0].sum() == tensor[3].sum() == 0
            del handle
            weft.torch.free(tensor)
            assert tensor.numel() == 0
            try:
                weft.torch.rendezvous(torch.zeros(3))
            except weft.NotSymmetric as error:
                assert "make it with weft.torch.empty" in str(error)
    """)


def test_functions_have_the_gradients_of_their_definition(programs):
    programs.ok(3, """
        with weft.init() as job:
            n, me = job.pe_count, job.pe
            torch.manual_seed(me)
            own = torch.randn(n * 2, 4, dtype=torch.float64, requires_grad=True)
            moved = weft.torch.all_to_all(own)
            everything = weft.torch.all_gather(own.detach())
            expected = everything.reshape(n, n, 2, 4)[:, me].reshape(n * 2, 4)
            assert torch.equal(moved, expected)
            weight = torch.arange(8.0 * n, dtype=torch.float64).reshape(n * 2, 4) * (me + 1)
            (moved * weight).sum().backward()
            weights = weft.torch.all_gather(weight)
            assert torch.equal(own.grad, weights.reshape(n, n, 2, 4)[:, me].reshape(n * 2, 4))

            own.grad = None
            gathered = weft.torch.all_gather(own)
            assert gathered.shape == (n * n * 2, 4)
            (gathered * (me + 1)).sum().backward()
            assert (own.grad == sum(range(1, n + 1))).all()

            own.grad = None
            total = weft.torch.all_reduce(own)
            assert torch.allclose(total, everything.reshape(n, n * 2, 4).sum(0))
            (total * (me + 1)).sum().backward()
            assert (own.grad == sum(range(1, n + 1))).all()
            assert weft.torch.all_reduce(torch.tensor(me), "max") == n - 1
            for op in ("max", torch.distributed.ReduceOp.MAX):
                assert weft.torch.all_reduce(torch.tensor(me), op=op) == n - 1
            assert weft.torch.all_reduce(torch.tensor(me + 1), op=torch.distributed.ReduceOp.PRODUCT) == torch.arange(1, n + 1).prod()
            assert weft.torch.all_gather(torch.tensor(me)).tolist() == list(range(n))
    """)


def test_gradcheck_in_one_pe(programs):
    programs.ok(1, """
        with weft.init():
            own = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
            for function in (weft.torch.all_to_all, weft.torch.all_gather, weft.torch.all_reduce):
                assert torch.autograd.gradcheck(function, (own,))
    """)


def test_operators_pass_the_checks_of_torch(programs):
    programs.ok(1, """
        with weft.init():
            symmetric, signals = weft.torch.zeros(4, 2), weft.torch.zeros(2, dtype=torch.uint64)
            source = torch.randn(4, 2, requires_grad=True)
            kinds = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
            for name in ("all_to_all", "all_gather", "all_reduce"):
                torch.library.opcheck(getattr(torch.ops.weft, name).default, (source,), test_utils=kinds)
            # opcheck copies its arguments, and copies are not symmetric; in a graph put changes
            # nothing but memory
            from torch._subclasses.fake_tensor import FakeTensorMode
            plain = source.detach()
            with FakeTensorMode() as mode:
                near, far, word = mode.from_tensor(symmetric), mode.from_tensor(plain), mode.from_tensor(signals)
                torch.ops.weft.put(near, far, 0), torch.ops.weft.get(far, near, 0), torch.ops.weft.barrier_all(near)
                torch.ops.weft.put_signal(near, far, word, 0), torch.ops.weft.signal_wait_until(word, ">=", 1)
                torch.ops.weft.all_to_all_vdev_2d(near, far, word, word, 0, 8)
                torch.ops.weft.all_to_all_vdev(near, far, word, word), torch.ops.weft.all_to_all_vdev_2d_offset(near, far, word, word)
                assert torch.ops.weft.all_gather(near).shape == (4, 2)
    """)


def test_a_compiled_graph_without_breaks(programs):
    programs.ok(2, """
        with weft.init() as job:
            inbox, signals = weft.torch.zeros(4, 8), weft.torch.zeros(1, dtype=torch.uint64)
            other = 1 - job.pe

            @torch.compile(fullgraph=True)
            def step(inbox, signals, x):
                torch.ops.weft.put_signal(inbox, x * 2, signals, other, 1, "add")
                torch.ops.weft.signal_wait_until(signals, ">=", 1)
                return inbox + 1

            out = step(inbox, signals, torch.full((4, 8), float(job.pe + 1)))
            assert (out == 2 * (other + 1) + 1).all(), out
            assert inbox.data_ptr() and (inbox == 2 * (other + 1)).all()

            @torch.compile(fullgraph=True)
            def mix(x):
                return weft.torch.all_to_all(x * 2).relu() + torch.ops.weft.all_reduce(x, "sum", 0)

            x = torch.arange(8.0).reshape(2, 4).requires_grad_()
            expected = weft.torch.all_to_all(x * 2).relu() + weft.torch.all_reduce(x)
            assert torch.equal(mix(x), expected)
            mix(x).sum().backward()
            assert x.grad is not None and (x.grad == 2 + 2).logical_or(x.grad == 2).all()
    """)


def test_rows_go_to_experts_in_the_shapes_of_symm_mem(programs):
    programs.ok(3, """
        with weft.init() as job:
            n, me, experts, width = job.pe_count, job.pe, 2, 5
            def splits_of(pe):
                return torch.randint(0, 4, (n * experts,), generator=torch.Generator().manual_seed(pe))
            source, out = weft.torch.zeros(64, width), weft.torch.zeros(128, width)
            in_splits = splits_of(me)
            rows = int(in_splits.sum())
            source[:rows] = torch.arange(rows)[:, None] + 1000.0 * me
            places = torch.zeros(2, experts * n, dtype=torch.int64)
            for align in (None, 8):
                out.zero_()
                weft.barrier_all()
                weft.torch.all_to_all_vdev_2d(source, out, in_splits, places, major_align=align)
                at = 0
                for expert in range(experts):
                    at = -(-at // (align or 1)) * (align or 1)
                    for pe in range(n):
                        theirs = splits_of(pe)
                        count, start = int(theirs[me * experts + expert]), int(theirs[:me * experts + expert].sum())
                        assert places[:, expert * n + pe].tolist() == [count, at]
                        assert torch.equal(out[at:at + count, 0], torch.arange(start, start + count) + 1000.0 * pe)
                        at += count
    """)


def test_rows_come_back_from_experts(programs):
    """What combine does after dispatch: every row returns to where it was, with what its expert made of it."""
    for node_size in "0", "1":
        programs.ok(3, """
            with weft.init() as job:
                n, experts = job.pe_count, 2
                source, there, back = weft.torch.zeros(64, 5), weft.torch.zeros(128, 5), weft.torch.zeros(64, 5)
                splits = torch.randint(0, 4, (n * experts,), generator=torch.Generator().manual_seed(job.pe))
                rows = int(splits.sum())
                source[:rows] = torch.arange(rows)[:, None] + 1000.0 * job.pe
                places, returned = torch.zeros(2, experts * n, dtype=torch.int64), torch.zeros(2, n * experts, dtype=torch.int64)
                weft.torch.all_to_all_vdev_2d(source, there, splits, places, major_align=4)
                there += 0.5
                weft.torch.all_to_all_vdev_2d_offset(there, back, places, returned)
                assert torch.equal(back[:rows], source[:rows] + 0.5) and (back[rows:] == 0).all()
                assert torch.equal(returned[0], splits) and torch.equal(returned[1], splits.cumsum(0) - splits)

                to_pes = splits.reshape(n, experts).sum(1)  # the same rows, whatever their expert
                found = torch.zeros(2, n, dtype=torch.int64)
                weft.torch.all_to_all_vdev(source, there, to_pes, found)
                assert torch.equal(found[1], found[0].cumsum(0) - found[0])
                for pe in range(n):
                    theirs = torch.randint(0, 4, (n * experts,), generator=torch.Generator().manual_seed(pe)).reshape(n, experts).sum(1)
                    assert found[0, pe] == theirs[job.pe]
                    first = int(theirs[:job.pe].sum()) + 1000.0 * pe
                    at = int(found[1, pe])
                    assert torch.equal(there[at:at + int(theirs[job.pe]), 0], torch.arange(int(theirs[job.pe])) + first)
        """, WEFT_NODE_SIZE=node_size)


def test_an_out_without_room_is_named_on_all_pes(programs):
    done = programs.ok(2, """
        with weft.init() as job:
            source, out = weft.torch.zeros(8, 2), weft.torch.zeros(8, 2)
            places = torch.zeros(2, 2, dtype=torch.int64)
            for _ in range(2):
                try:
                    weft.torch.all_to_all_vdev_2d(source, out[:3] if job.pe == 1 else out, torch.tensor([2, 2]), places)
                except weft.WrongShape as error:
                    say(error)
            try:
                weft.torch.all_to_all_vdev_2d(source, out, torch.tensor([2, 2, 2]), places)
            except weft.WrongShape as error:
                say(error)
    """)
    text = "weft.torch.all_to_all_vdev_2d: 4 rows arrive, and out of PE 1 has 3; make it larger"
    assert done.lines().count(text) == 4 and sum("give a multiple of 2" in line for line in done.lines()) == 2, done.out


def test_teams_have_workspaces_of_their_own(programs):
    done = programs.ok(4, """
        with weft.init() as job:
            pair = weft.world.split_2d(2)[0]
            try:
                weft.torch.all_gather(torch.ones(3), pair)
            except weft.InvalidArgument as error:
                say(error)
            weft.torch.reserve(1024, pair)
            for turn in range(10):
                got = weft.torch.all_gather(torch.full((3,), job.pe + turn), pair)
                first = job.pe // 2 * 2
                assert got.tolist() == [first + turn] * 3 + [first + 1 + turn] * 3
                assert weft.torch.all_reduce(torch.ones(100000)).sum() == 400000
    """)
    assert "call weft.torch.reserve(24, team) on all PEs first" in done.lines()[0]


def test_wrong_tensors_are_refused_with_a_sentence(programs):
    programs.ok(1, """
        with weft.init():
            inbox = weft.torch.zeros(4, 4)
            def refused(kind, words, call):
                try:
                    call()
                except kind as error:
                    assert words in str(error), error
                else:
                    raise AssertionError(words)
            refused(weft.NotContiguous, "Tensor.contiguous", lambda: weft.put(inbox[0], torch.zeros(4, 4)[:, 0], 0))
            refused(weft.WrongDtype, "dest is of float32 and source of float64", lambda: weft.put(inbox, torch.zeros(4, 4, dtype=torch.float64), 0))
            refused(weft.WrongDevice, "is on the device meta", lambda: weft.put(inbox, torch.zeros(4, 4, device="meta"), 0))
            refused(weft.NotSymmetric, "make it with weft.empty", lambda: weft.put(torch.zeros(4, 4), inbox, 0))
            refused(weft.WrongDtype, "no reduction over bfloat16", lambda: weft.torch.all_reduce(torch.zeros(4, dtype=torch.bfloat16)))
            refused(weft.WrongDtype, "has no gradient", lambda: weft.torch.all_reduce(torch.zeros(4, requires_grad=True), "max").sum().backward())
            refused(weft.WrongShape, "one equal block", lambda: weft.torch.all_to_all(torch.tensor(1.0)))
            refused(weft.NoCuda, "no NVIDIA driver", lambda: weft.torch.zeros(4, device="cuda")) if not torch.cuda.is_available() else None
    """)


def test_a_process_group_of_torch_becomes_the_job(programs):
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = programs.write("""
        import torch.distributed as dist
        dist.init_process_group("gloo")
        half = dist.new_group([0, 1])
        other = dist.new_group([2])
        with weft.init(group=half if dist.get_rank() < 2 else other) as job:
            inbox = weft.torch.zeros(1)
            weft.put(inbox, torch.tensor([dist.get_rank() + 1.0]), (job.pe + 1) % job.pe_count)
            weft.barrier_all()
            say(dist.get_rank(), job.pe, job.pe_count, int(inbox.item()))
        dist.destroy_process_group()
    """)
    processes = [programs.start(programs.python, program, RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
                 for rank in range(3)]
    done = [programs.finish(process) for process in processes]
    assert [one.lines() for one in done] == [["0 0 2 2"], ["1 1 2 1"], ["2 0 1 3"]], done


def test_workers_of_a_data_loader_read_symmetric_memory(programs):
    programs.ok(1, """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, tensor): self.tensor = tensor
            def __len__(self): return len(self.tensor)
            def __getitem__(self, row): return self.tensor[row].clone()
        with weft.init():
            tensor = weft.torch.zeros(8, 3)
            tensor[:] = torch.arange(8.0)[:, None]
            loader = torch.utils.data.DataLoader(Rows(tensor), batch_size=4, num_workers=2, multiprocessing_context="fork")
            assert torch.cat(list(loader)).sum() == tensor.sum() == 84
    """)


def test_a_symmetric_tensor_is_not_sent_to_a_process_that_was_spawned(programs):
    """torch would move it into memory that peers do not write to, without a word."""
    done = programs.run(programs.python, programs.write("""
        class Rows(torch.utils.data.Dataset):
            def __init__(self, tensor): self.tensor = tensor
            def __len__(self): return len(self.tensor)
            def __getitem__(self, row): return self.tensor[row].clone()
        def all_of(tensor):
            return torch.cat(list(torch.utils.data.DataLoader(Rows(tensor), batch_size=4, num_workers=1, multiprocessing_context="spawn")))
        if __name__ == "__main__":
            with weft.init():
                tensor = weft.torch.zeros(8, 3)
                address = tensor.data_ptr()
                for one in (tensor, tensor[2:], torch.nn.Parameter(tensor)):
                    try:
                        all_of(one)
                    except weft.InvalidArgument as error:
                        say(error)
                assert tensor.data_ptr() == address
                weft.put(tensor, torch.ones(8, 3), 0)
                assert all_of(tensor.clone()).sum() == tensor.sum() == 24
    """))
    assert done.status == 0, done.err
    assert len(done.lines()) == 3 and all("send tensor.clone()" in line for line in done.lines()), done.out


def test_the_examples_print_what_they_promise(programs, project):
    from test_python_examples import check
    for path in sorted((project / "examples").glob("*torch*.py")):
        check(programs, path)


def test_the_block_of_the_documentation(programs):
    from test_python_examples import blocks_of_documentation
    (block,) = [block for block in blocks_of_documentation() if "import torch, weft" in block]
    programs.ok(2, block + """
    weft.barrier_all()
    assert y.shape == (8, 16) and bool((inbox[0] == 1).all()) == (job.pe == 0)
    y.sum().backward()
    assert bool((x.grad == 1).all())
""")


def torchrun(programs, *words):
    return [programs.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, *words]


def test_a_job_under_torchrun(programs):
    program = programs.write("""
        with weft.init() as job:
            inbox = weft.torch.zeros(1)
            weft.put(inbox, torch.tensor([job.pe + 1.0]), 1 - job.pe)
            weft.barrier_all()
            say(job.pe, job.pe_count, int(inbox.item()), os.environ["RANK"])
    """)
    done = programs.run(*torchrun(programs, program))
    assert done.status == 0 and done.lines() == ["0 2 2 0", "1 2 1 1"], done.out + done.err


def test_ctrl_c_at_torchrun_ends_the_job(programs, tmp_path):
    import os
    import signal
    import time
    from test_ends import wait_for
    program = programs.write(f"""
        job = weft.init()
        if job.pe == 0:
            open({str(tmp_path / "ready")!r}, "w").close()
            time.sleep(60)
        weft.barrier_all()
    """)
    process = programs.start(*torchrun(programs, program))
    wait_for(tmp_path / "ready", 60)
    os.kill(process.pid, signal.SIGINT)
    assert programs.finish(process, 60).status != 0
    time.sleep(0.5)


def test_a_pe_that_raises_under_torchrun_ends_the_job(programs):
    done = programs.run(*torchrun(programs, programs.write("""
        job = weft.init()
        if job.pe == 1:
            raise ValueError("this PE has enough")
        weft.barrier_all()
        weft.barrier_all()
    """)))
    assert done.status != 0 and "ValueError: this PE has enough" in done.err, done.err


@pytest.mark.parametrize("pes", [1, 3])
def test_the_example_of_training_works_with_any_number_of_pes(programs, project, pes):
    done = programs.run(programs.weft_run, "-n", pes, "--", programs.python, project / "examples" / "18_moe_training_torch.py")
    assert done.status == 0 and "below 1e-7" in done.out, done.out + done.err
