"""weft.moe when something is wrong: arguments, PEs that are late, that are killed, results that are kept too long."""
import pytest

SETUP = """
    from weft import moe
    job = weft.init()
    def make(**more):
        return moe.Exchange(**({"max_tokens": 4, "hidden": 8, "experts": 5, "topk": 2, "payload": "float32",
                                "layout": "expert_compact", "timeout": 20.0} | more))
    x = numpy.full((4, 8), job.pe + 1.0, "float32")
    ids = numpy.array([[0, 1], [2, 3], [3, 4], [4, 0]])
    weights = numpy.ones((4, 2), "float32")
    frozen = numpy.zeros((4, 8), "float32")
    frozen.flags.writeable = False
    def attempt(call):
        try:
            call()
            return "no error"
        except weft.Error as error:
            return f"{type(error).__name__}: {error}"
    def works(exchange, scale=2.0):
        result = exchange.dispatch(x, ids, weights)
        y = exchange.combine(result.x.copy(), result.plan)
        assert (y == scale * x).all(), y
"""

WRONG = [
    ("exchange.dispatch(numpy.zeros((5, 8), 'float32'), numpy.zeros((5, 2), int))",
     "InvalidArgument", "x has 5 tokens, and the exchange was made for 4; give fewer, or raise max_tokens"),
    ("exchange.dispatch(numpy.zeros((4, 9), 'float32'), ids)", "WrongShape",
     "x has the shape (4, 9), and [tokens, 8] of float32 is needed"),
    ("exchange.dispatch(x.astype('float64'), ids)", "InvalidArgument",
     "x is of float64, and the exchange moves float32; convert it first"),
    ("exchange.dispatch(x.astype('>f4'), ids)", "WrongDtype", "x has the other byte order (>f4); convert it: x.astype('float32')"),
    ("exchange.dispatch(x, ids, phase='sending')", "InvalidArgument", "phase is 'sending'; give one of both, send, recv"),
    ("exchange.combine(out, plan, weights, phase='sending')", "InvalidArgument", "phase is 'sending'; give one of both, send, recv"),
    ("exchange.combine(out.astype('>f4'), plan)", "WrongDtype", "expert_out has the other byte order (>f4)"),
    ("exchange.dispatch(x.astype('int64'), ids)", "WrongDtype", "x is of int64; give float32"),
    ("exchange.dispatch(x[:, ::2].repeat(2, 1)[:, ::1][::2], ids[::2])", "NotContiguous",
     "x is a view with gaps; copy it first (numpy.ascontiguousarray)"),
    ("exchange.dispatch([[1.0] * 8], ids[:1])", "WrongDtype", "x is a list; give a numpy array or a CPU tensor"),
    ("exchange.dispatch(x, ids[:3])", "WrongShape", "topk_ids has the shape (3, 2), and [tokens, topk] = (4, 2) is needed"),
    ("exchange.dispatch(x, ids * 1.5)", "WrongDtype", "topk_ids is of float64; give int64"),
    ("exchange.dispatch(x, ids + 3)", "InvalidArgument",
     "topk_ids[1, 0] is 5, and there are 5 experts; give ids from 0 to 4, or -1 for no route"),
    ("exchange.dispatch(x, ids - 3)", "InvalidArgument",
     "topk_ids[0, 0] is -3, and there are 5 experts; give ids from 0 to 4, or -1 for no route"),
    ("exchange.dispatch(x, numpy.full((4, 2), -2**63))", "InvalidArgument",
     "topk_ids[0, 0] is -9223372036854775808, and there are 5 experts; give ids from 0 to 4, or -1 for no route"),
    ("exchange.dispatch(x, ids, weights[:, :1])", "WrongShape",
     "topk_weights has the shape (4, 1), and [tokens, topk] = (4, 2) is needed"),
    ("exchange.dispatch(x, None)", "InvalidArgument", "topk_ids is missing; give x and topk_ids (or a plan)"),
    ("exchange.dispatch(x, ids, scales=weights)", "InvalidArgument", "scales were given, and the exchange has none"),
    ("exchange.combine(None, plan)", "InvalidArgument", "expert_out is missing; give rows in the shape of Result.x"),
    ("exchange.combine(out, None)", "InvalidArgument", "plan is NoneType; give the plan of a Result"),
    ("exchange.combine(out[:-1], plan)", "WrongShape", "and the shape of Result.x = "),
    ("exchange.combine(out.astype('float16'), plan)", "InvalidArgument",
     "expert_out is of float16, and the exchange combines float32; convert it, or make the exchange with output="),
    ("exchange.combine(out, plan)", "InvalidArgument", "topk_weights are missing: neither dispatch nor combine got them"),
    ("exchange.combine(out, plan, weights[:2])", "WrongShape",
     "topk_weights has the shape (2, 2), and [tokens, topk] = (4, 2) is needed"),
    ("exchange.combine(out, plan, weights, precision='best')", "InvalidArgument",
     "precision is 'best'; give one of reduced, exact, lanes, fp8"),
    ("exchange.combine(out, plan, weights, out=numpy.zeros((3, 8), 'float32'))", "WrongShape",
     "out has the shape (3, 8), and [tokens, hidden] = (4, 8) is needed"),
    ("exchange.combine(out, plan, weights, precision='fp8')", "InvalidArgument",
     "with a multiple of 16 values, and these are 8 of float32; use 'reduced'"),
    ("exchange.dispatch(x, plan=5)", "InvalidArgument", "plan is int; give the plan of a Result"),
    ("exchange.dispatch(x, ids, bound=-1)", "InvalidArgument", "bound is -1; give the number of tokens that are sent"),
    ("exchange.dispatch(x, ids, bound=1.5)", "InvalidArgument", "bound is 1.5; give one integer"),
    ("exchange.dispatch(x, plan=plan, bound=2)", "InvalidArgument", "pass either plan or bound"),
    ("exchange.combine(out, plan, weights, out=frozen)",
     "InvalidArgument", "out is read-only; give an array that can be written"),
]


@pytest.mark.parametrize("pes, node_size", [(3, "0"), (3, "1"), (4, "2"), (3, "2")])
def test_wrong_arguments_on_one_pe_are_named_on_all_and_the_exchange_goes_on(programs, pes, node_size):
    """One PE calls with the wrong arguments, in the place of a call that the others make right, in either way of a combine."""
    done = programs.ok(pes, SETUP + f"""
    exchange = make()
    works(exchange)
    for number, (call, kind, text) in enumerate({WRONG!r}):
        result = exchange.dispatch(x, ids)
        out, plan = result.x.copy(), result.plan
        # Weights for sums at the experts go there before anything else, in a channel of their own.
        rights = (["exchange.dispatch(x, ids)"] if "dispatch" in call else
                  ["exchange.combine(out, plan, weights)", "exchange.combine(out, plan, weights, precision='exact')"])
        for right in rights:
            said = attempt(lambda: eval(call if job.pe == number % {pes} else right))
            wanted = kind if job.pe == number % {pes} else f"Mismatch: weft.moe.Exchange.{{'dispatch' if 'dispatch' in call else 'combine'}}: PE {{number % {pes}}} could not take part:"
            assert said.startswith(wanted) and text in said, f"{{call}} on {{number % {pes}}}, PE {{job.pe}}, {{right}}: {{said}}"
        del result
        works(exchange)
    say("done")
    """, WEFT_NODE_SIZE=node_size)
    assert done.lines() == ["done"] * pes


CALLS = {
    "dispatch": "exchange.dispatch(x, ids, weights)",
    "dispatch in two phases": "(exchange.dispatch(x, ids, weights, phase='send'), exchange.dispatch(phase='recv'))",
    "combine": "exchange.combine(out, plan)",
    "combine, exact": "exchange.combine(out, plan, precision='exact')",
    "combine in two phases": "(exchange.combine(out, plan, phase='send'), exchange.combine(phase='recv'))",
    "combine by weights": "exchange.combine(out, plan, weights)",
}
SHAPES = [(3, "0"), (3, "1"), (4, "2"), (3, "2")]


@pytest.mark.parametrize("pes, node_size", SHAPES)
@pytest.mark.parametrize("on_timeout", ["error", "mask"])
def test_a_refusal_reaches_all_in_whatever_call_they_are(programs, pes, node_size, on_timeout):
    done = programs.ok(pes, SETUP + f"""
    exchange = make(on_timeout={on_timeout!r})
    works(exchange)
    for number, (step, call) in enumerate((step, call) for step in ("dispatch", "combine") for call in {list(CALLS.values())!r}):
        result = exchange.dispatch(x, ids, weights)
        out, plan = result.x.copy(), result.plan
        del result
        erring = number % {pes}
        both = (erring + 1) % {pes} if number % 3 == 0 else erring  # another one refuses at the same time
        if job.pe in (erring, both):
            exchange.refuse(step, f"no {{job.pe}}")
        else:
            said = attempt(lambda: eval(call))
            named = [f"PE {{pe}} could not take part: no {{pe}}" for pe in (erring, both)]
            assert said.startswith("Mismatch") and any(name in said for name in named), f"{{step}}, {{call}}, PE {{job.pe}}: {{said}}"
        works(exchange)
    assert exchange.active_mask.all()
    say("done")
    """, WEFT_NODE_SIZE=node_size)
    assert done.lines() == ["done"] * pes


@pytest.mark.parametrize("pes, node_size", SHAPES)
def test_pes_that_make_different_calls_are_named(programs, pes, node_size):
    """Also where one waits for weights and another for sums, which are different channels."""
    done = programs.ok(pes, SETUP + f"""
    exchange = make()
    works(exchange)
    calls = {list(CALLS.values())!r}
    same = [{{0, 1}}, {{2, 4}}]  # in one phase and in two
    for number, (one, other) in enumerate((a, b) for a in range(6) for b in range(6) if a != b and {{a, b}} not in same):
        result = exchange.dispatch(x, ids, weights)
        out, plan = result.x.copy(), result.plan
        del result
        erring = number % {pes}
        said = attempt(lambda: eval(calls[one if job.pe == erring else other]))
        assert said.startswith("Mismatch") and "makes another call" in said and f"PE {{erring}}" in said, f"{{calls[one]}}, {{calls[other]}}: {{said}}"
        works(exchange)
    say("done")
    """, WEFT_NODE_SIZE=node_size)
    assert done.lines() == ["done"] * pes


def test_a_result_in_place_outlives_refusals(programs):
    programs.ok(3, SETUP + """
    exchange = make(layout="rank_major")
    held = exchange.dispatch(numpy.full_like(x, 1), ids, weights)
    for number in range(2, 9):
        for step in ("combine", "combine", "combine"):
            if job.pe == 1:
                exchange.refuse(step, "no")
            else:
                assert "PE 1 could not take part: no" in attempt(lambda: exchange.combine(numpy.zeros((3, 4, 8), "float32"), held.plan))
        following = exchange.dispatch(numpy.full_like(x, number), ids, weights)
        for rank in range(3):
            assert (held.x[rank, :held.counts[rank]] == number - 1).all()
        held = following
    """)


@pytest.mark.parametrize("arguments, text", [
    ({"experts": 2}, "experts is 2; give at least one for each of the 3 ranks, at most 4096"),
    ({"topk": 33}, "topk is 33; give 1 to 32"),
    ({"hidden": 6}, "a row of 6 values of float32 has 24 bytes; give a hidden that makes it a multiple of 16"),
    ({"payload": "int8"}, "payload is 'int8'; give one of bfloat16, float16, float32, float64, fp8_e4m3, fp8_e5m2, nvfp4"),
    ({"scales": "float32"}, "scales do not fit the payload float32"),
    ({"max_tokens": 2.5}, "max_tokens is 2.5; give an integer"),
    ({"timeout": 0}, "timeout is 0 s; give more than 0"),
    ({"row_per": "pe"}, "row_per is 'pe'; give one of auto, rank, node"),
    ({"outputs_in_place": True}, "outputs_in_place is given, and the layout is expert_compact; choose rank_major or rank_compact"),
    ({"hidden": 10**30}, "hidden is 1000000000000000000000000000000; give an integer of 32 bits"),
    ({"topk": 2**31}, "topk is 2147483648; give an integer of 32 bits"),
    ({"team": "world"}, "team is a str; give a weft.Team"),
    ({"layout": "rows"}, "layout is 'rows'; give one of rank_major, rank_compact, expert_padded, expert_compact"),
    ({"device": "cuda"}, "device is 'cuda', and torch")])
def test_an_exchange_that_cannot_be_is_refused_on_all_pes(programs, arguments, text):
    done = programs.ok(3, SETUP + f"""
    said = attempt(lambda: make(**({arguments!r} if job.pe == 1 else {{}})))
    assert {text!r} in said and ("PE 1" in said or job.pe == 1), said
    works(make())
    say("done")
    """)
    assert done.lines() == ["done"] * 3


def test_a_row_for_each_node_needs_the_memory_of_its_pes_mapped(programs):
    done = programs.ok(4, SETUP + """
    said = attempt(lambda: make(row_per="node"))
    assert "row_per is node, and PE 0 has not the memory of all PEs of its node mapped; give another" in said, said
    works(make())  # auto is a row for each rank there
    say("done")
    """, WEFT_NODE_SIZE="2", WEFT_NODE_LOCAL="cma")
    assert done.lines() == ["done"] * 4


def test_pes_that_make_different_exchanges_are_named(programs):
    programs.ok(2, SETUP + """
    said = attempt(lambda: make(topk=2 + job.pe))
    assert "the PEs differ: topk is 2 on PE 0 and 3 on PE 1; give the same on all PEs of a team" in said, said
    said = attempt(lambda: make(row_per=["node", "rank"][job.pe]))
    assert "the PEs differ: row_per is 2 on PE 0 and 1 on PE 1" in said, said
    """)


def test_a_third_living_result_is_refused_by_name(programs):
    programs.ok(2, SETUP + """
    exchange = make()
    kept = [exchange.dispatch(x, ids, weights) for _ in range(2)]
    view = kept[0].counts, kept[0].x[1:2]
    del kept[0]
    said = attempt(lambda: exchange.dispatch(x, ids, weights))
    assert "dispatch 3 needs the memory of dispatch 1, and views of that Result are alive" in said, said
    del view
    kept.clear()
    kept = [exchange.dispatch(x, ids, weights)]
    said = attempt(lambda: exchange.close())
    assert "views of a Result are alive" in said, said
    """)


def test_a_combine_whose_out_was_refused_is_received_by_the_next_call(programs):
    """Between its send and its receive: only this PE can know, and what was sent waits."""
    programs.ok(2, SETUP + """
    exchange = make()
    for _ in range(3):
        result = exchange.dispatch(x, ids, weights)
        exchange.combine(result.x.copy(), result.plan, phase="send")
        if job.pe == 1:
            wrong = attempt(lambda: exchange.combine(phase="recv", out=numpy.zeros((3, 8), "float32")))
            assert "out has the shape (3, 8), and [tokens, hidden] = (4, 8) is needed" in wrong, wrong
            assert "out is read-only" in attempt(lambda: exchange.combine(phase="recv", out=frozen))
            assert "phase is 'rec'" in attempt(lambda: exchange.combine(phase="rec"))
        assert (exchange.combine(phase="recv") == 2 * x).all()
        del result
    works(exchange)
    """)


def test_steps_out_of_order_are_refused(programs):
    programs.ok(2, SETUP + """
    exchange = make()
    assert "dispatch(phase='recv') without dispatch(phase='send') before it" in attempt(lambda: exchange.dispatch(phase="recv"))
    exchange.dispatch(x, ids, weights, phase="send")
    assert "a dispatch was sent and not received" in attempt(lambda: exchange.dispatch(x, ids))
    result = exchange.dispatch(phase="recv")
    exchange.combine(result.x.copy(), result.plan, phase="send")
    assert "a combine was sent and not received" in attempt(lambda: exchange.dispatch(x, ids))
    assert (exchange.combine(phase="recv") == 2 * x).all()
    del result
    exchange.close()
    assert attempt(lambda: exchange.dispatch(x, ids)).startswith("Freed")
    """)


LATE = {
    "dispatch": "exchange.dispatch(x, ids, weights)",
    "combine": "exchange.combine(out, plan)",
    "combine (weights)": "exchange.combine(out, plan, weights)",
}


@pytest.mark.parametrize("step", LATE)
@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_late_pe_is_named_with_the_step(programs, step, node_size):
    done = programs.ok(3, SETUP + f"""
    exchange = make(timeout=2.0)
    works(exchange)
    if {step!r} != "dispatch":
        result = exchange.dispatch(x, ids, weights)
        out, plan = result.x.copy(), result.plan
    weft.barrier_all()
    if job.pe == 1:
        time.sleep(5)
    begin = time.monotonic()
    said = attempt(lambda: {LATE[step]})
    if job.pe != 1:
        assert said.startswith("Timeout") and "{step.split()[0]} " in said and "{step.split()[-1]}" in said, said
        assert ": nothing came from PE 1 of 3 within 2 s; look at what these PEs do" in said, said
        say(time.monotonic() - begin)
        assert "the exchange is broken, make a new one" in attempt(lambda: exchange.dispatch(x, ids))
    weft.barrier_all()
    """, WEFT_NODE_SIZE=node_size)
    assert len(done.lines()) == 2


# Who leaves first ends the job of the others, so all are done before.
LEAVE = """
    folder = pathlib.Path(sys.argv[2])
    (folder / f"done.{job.pe}").touch()
    while len(list(folder.glob("done.*"))) < job.pe_count - 1:
        time.sleep(0.01)
    os._exit(0)
"""


class Alone:
    """PEs that this test starts itself, without a launcher that would end all when one dies."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder

    def run(self, count, body, **variables):
        program = self.programs.write("""
    import pathlib
    def meet(pe, count, folder):
        folder = pathlib.Path(folder)
        if pe == 0:
            (folder / "unfinished").write_bytes(weft.unique_id())
            os.rename(folder / "unfinished", folder / "id")
        while not (folder / "id").exists():
            time.sleep(0.01)
        return weft.init(pe=pe, pe_count=count, unique_id=(folder / "id").read_bytes())
    def die():
        os.kill(os.getpid(), 9)
""" + SETUP.replace("weft.init()", f"meet(int(sys.argv[1]), {count}, {str(self.folder)!r})") + body + LEAVE)
        variables["WEFT_ON_PEER_LOST"] = "report"
        processes = [self.programs.start(self.programs.python, program, pe, self.folder, **variables) for pe in range(count)]
        return [self.programs.finish(process) for process in processes]


@pytest.fixture
def alone(programs, tmp_path):
    return Alone(programs, tmp_path)


KILL_AT = ["before dispatch", "between send and receive of dispatch", "before combine", "between send and receive of combine"]


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
@pytest.mark.parametrize("step", KILL_AT)
def test_the_others_finish_with_right_sums_when_one_of_four_is_killed(alone, step, node_size):
    done = alone.run(4, f"""
    exchange = make(timeout={4.0 if node_size == "2" else 8.0}, on_timeout="mask")  # a PE that lives is not that late, whatever runs beside it
    works(exchange)
    dying, steps = job.pe == 2, {KILL_AT!r}
    def reach(step):
        if dying and step == {step!r}:
            die()
    reach("before dispatch")
    exchange.dispatch(x, ids, weights, phase="send")
    reach("between send and receive of dispatch")
    result = exchange.dispatch(phase="recv")
    reach("before combine")
    exchange.combine(result.x.copy(), result.plan, phase="send")
    reach("between send and receive of combine")
    y = exchange.combine(phase="recv")
    # Experts 0 and 1 are on rank 0, 2 on rank 1, 3 on rank 2, 4 on rank 3. What rank 2 had sent may
    # count.
    lost = numpy.array([0, 1, 1, 0])[:, None]
    first = {step!r} == "between send and receive of combine"
    assert (y == (2 - lost) * x).all() or first and (y == 2 * x).all(), y
    for _ in range(3):
        result = exchange.dispatch(x, ids, weights)
        y = exchange.combine(result.x.copy(), result.plan)
        assert (y == (2 - lost) * x).all(), y
        # Rows of the lost PE are left out: experts see those of three sources.
        assert len(numpy.unique(result.x[:, 0])) == 3 and 3 not in result.x
    assert exchange.active_mask.tolist() == [True, True, False, True]
    say(job.pe, "finished")
    """, WEFT_NODE_SIZE=node_size)
    for pe, one in enumerate(done):
        if pe != 2:
            assert one.lines() == [f"{pe} finished"], one.out + one.err


@pytest.mark.parametrize("node_size", ["0", "1"])
def test_who_waited_for_a_killed_pe_is_not_masked_for_it(alone, node_size):
    """The killed PE reached two of three. The third waits for it in dispatch, and so is late in combine, where the two wait."""
    done = alone.run(4, """
    exchange = make(timeout=4.0, on_timeout="mask")
    works(exchange)
    if job.pe == 2:
        exchange.leave_out(3)  # nothing is sent to it
    exchange.dispatch(x, ids, weights, phase="send")
    if job.pe == 2:
        time.sleep(1)
        die()
    result = exchange.dispatch(phase="recv")
    y = exchange.combine(result.x.copy(), result.plan)
    lost = numpy.array([0, 1, 1, 0])[:, None]
    for _ in range(3):
        result = exchange.dispatch(x, ids, weights)
        y = exchange.combine(result.x.copy(), result.plan)
        assert (y == (2 - lost) * x).all(), y
    assert exchange.active_mask.tolist() == [True, True, False, True]
    say(job.pe, "finished")
    """, WEFT_NODE_SIZE=node_size)
    for pe, one in enumerate(done):
        if pe != 2:
            assert one.lines() == [f"{pe} finished"], one.out + one.err


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_killed_pe_is_named(alone, node_size):
    done = alone.run(3, """
    exchange = make(timeout=4.0)
    works(exchange)
    if job.pe == 1:
        die()
    say(attempt(lambda: works(exchange)))
    """, WEFT_NODE_SIZE=node_size)
    for pe in (0, 2):
        assert "nothing came from PE 1 of 3 within 4 s" in done[pe].out, done[pe].out + done[pe].err


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_teams_of_different_sizes_have_exchanges_of_their_own(programs, node_size):
    programs.ok(6, SETUP + """
    first, second = weft.world.split(0, 1, 3), weft.world.split(3, 1, 2)  # PE 5 is in neither
    mine = second if second.is_member else first
    exchange = make(team=mine, experts=5 if first.is_member else 7)
    if job.pe == 5:
        assert "this PE is in no team of the exchange" in attempt(lambda: exchange.dispatch(x, ids, weights))
    else:
        assert (exchange.rank, exchange.ranks) == (mine.pe, mine.pe_count)
        for _ in range(2 if first.is_member else 7):  # teams do not wait for each other
            works(exchange)
    weft.barrier_all()
    exchange.close()
    """, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_result_in_place_outlives_a_peer_that_is_a_dispatch_ahead(programs, node_size):
    """The peer has begun dispatch 3, and waits there for this PE, which still reads what dispatch 1 brought."""
    programs.ok(2, SETUP + """
    exchange = make(layout="rank_major")
    results = []
    for number in (1, 2, 3):
        if number == 3 and job.pe == 1:
            time.sleep(1)
            first = results.pop(0)
            for rank in range(2):
                rows = first.x[rank, :first.counts[rank]]
                assert (rows == 1).all(), f"rows of rank {rank} are those of another dispatch: {rows}"
            del first, rows
        elif number == 3:
            del results[0]
        results.append(exchange.dispatch(numpy.full_like(x, number), ids, weights))
    """, WEFT_NODE_SIZE=node_size)


# A PE that is late makes none of the calls that the others make meanwhile; then all rejoin.
COMES_BACK = """
    exchange = make(timeout=4.0, on_timeout={on_timeout!r})
    def pairs(gone=None):
        for weights_late in (False, True):
            result = exchange.dispatch(x, ids, None if weights_late else weights)
            y = exchange.combine(result.x.copy(), result.plan, weights if weights_late else None)
            experts_of = numpy.array([0, 0, 1, 1, 2])  # by rank, of three
            lost = 0 if gone is None else (experts_of[ids] == gone).sum(1)[:, None]
            assert (y == (2 - lost) * x).all(), y
            assert sorted(numpy.unique(result.x[:, 0])) == [pe + 1 for pe in range(3) if pe != gone], result.x[:, 0]
    pairs()
"""


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
@pytest.mark.parametrize("step", ["between calls", "with a dispatch sent", "with a combine sent"])
def test_a_late_pe_comes_back_with_right_sums(programs, step, node_size):
    programs.ok(3, SETUP + COMES_BACK.format(on_timeout="mask") + f"""
    for _ in range(2):
        if job.pe == 1:
            if {step!r} == "with a dispatch sent":
                exchange.dispatch(x, ids, weights, phase="send")
            elif {step!r} == "with a combine sent":
                result = exchange.dispatch(x, ids, weights)
                exchange.combine(result.x.copy(), result.plan, phase="send")
                del result
            time.sleep(0.1)
        else:
            for call in range(2):  # the late PE's part of the first one may count
                result = exchange.dispatch(x, ids, weights)
                exchange.combine(result.x.copy(), result.plan)
                del result
            if exchange.active_mask[1]:
                result = exchange.dispatch(x, ids, weights)
                exchange.combine(result.x.copy(), result.plan)
                del result
            pairs(gone=1)
            assert exchange.active_mask.tolist() == [True, False, True]
        exchange.rejoin()
        assert exchange.active_mask.all()
        for _ in range(3):
            pairs()
    exchange.close()
    """, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_broken_exchange_works_again_when_all_rejoin(programs, node_size):
    programs.ok(3, SETUP + COMES_BACK.format(on_timeout="error") + """
    if job.pe != 1:
        assert "nothing came from PE 1" in attempt(pairs)
        assert "the exchange is broken" in attempt(pairs)
    exchange.rejoin()
    for _ in range(3):
        pairs()
    """, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("node_size", ["0", "1", "2"])
def test_a_pe_that_is_left_out_is_not_waited_for(programs, node_size):
    programs.ok(3, SETUP + COMES_BACK.format(on_timeout="mask") + """
    for rank in (-1, 3, job.pe):
        assert f"rank is {rank}; give another of the 3 ranks than this PE's own, {job.pe}" in attempt(lambda: exchange.leave_out(rank))
    begin = time.monotonic()
    if job.pe != 1:
        exchange.leave_out(1)
        pairs(gone=1)
        assert time.monotonic() - begin < 4.0, "a timeout was waited for"
    exchange.rejoin()
    pairs()
    """, WEFT_NODE_SIZE=node_size)


@pytest.mark.parametrize("node_size", ["0", "1"])
def test_a_pe_that_died_cannot_come_back(alone, node_size):
    done = alone.run(3, """
    exchange = make(timeout=2.0, on_timeout="mask")
    works(exchange)
    if job.pe == 1:
        die()
    exchange.dispatch(x, ids, weights)
    said = attempt(exchange.rejoin)
    say(said)
    """, WEFT_NODE_SIZE=node_size)
    for pe in (0, 2):
        assert "PE 1" in done[pe].out, done[pe].out + done[pe].err
