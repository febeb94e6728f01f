"""What the functions of an OpenSHMEM family do, in one sentence. The specification has the rest, docs/OPENSHMEM.md what
is particular here. The first pattern that matches the family's name after `shmem_` or `pshmem_` counts; TYPE and SIZE stand
for a type and a size."""
import re

SENTENCES = [
    (r"init|start_pes", "Joins the job. Collective."),
    (r"init_thread", "Joins the job, and stores the thread level that is provided: the one that was requested. Collective."),
    (r"finalize", "Completes what is outstanding, waits for all PEs, and leaves the job. Collective."),
    (r"global_exit", "Ends all PEs; the launcher returns `status`."),
    (r"query_initialized", "Stores whether the PE has joined and not left."),
    (r"query_thread", "Stores the thread level."),
    (r"_?my_pe", "This PE, from 0."),
    (r"_?n(?:um)?_pes", "The number of PEs."),
    (r"pe_accessible", "Whether there is a PE of this number."),
    (r"addr_accessible", "Whether the address is symmetric on that PE."),
    (r"ptr|team_ptr", "The address at which `dest` of that PE is mapped here, for loads and stores; NULL if it is not."),
    (r"info_get_version|info_get_name", "The version of the specification, or the name of this library."),
    (r"pcontrol", "Does nothing."),
    (r"malloc|shmalloc", "Symmetric memory. Collective, with the same size on all PEs."),
    (r"malloc_with_hints", "As `shmem_malloc`; the hints are accepted and ignored."),
    (r"calloc", "Symmetric memory, zeroed. Collective."),
    (r"align|shmemalign", "Symmetric memory at a multiple of `alignment`. Collective."),
    (r"realloc|shrealloc", "Another block with the old one's contents; frees the old one. Collective."),
    (r"free|shfree", "Frees symmetric memory. Collective."),
    (r"team_my_pe|team_n_pes", "This PE's number in the team; the team's number of PEs; -1 for no team."),
    (r"team_get_config", "The team's configuration."),
    (r"team_translate_pe", "The number that a PE of one team has in another; -1 if it is not in both."),
    (r"team_split_strided", "A team of every `stride`-th PE of the parent. Collective over the parent."),
    (r"team_split_2d", "Two teams for each PE: its row and its column. Collective over the parent."),
    (r"team_destroy", "Destroys the team and its contexts. Collective over the team."),
    (r"ctx_create|team_create_ctx|ctx_destroy|ctx_get_team", "Contexts: create, destroy, the team of one."),
    (r"ctx_session_\w+", "Hints about what comes next on a context; ignored, because small operations are aggregated anyway."),
    (r"fence", "Orders, for each PE, what was before it ahead of what comes after it."),
    (r"quiet", "Returns when all operations before it are visible at their targets."),
    (r"pe_quiet", "As `shmem_quiet`, for the PEs that it names."),
    (r"barrier_all|barrier", "Completes what is outstanding, and waits for all PEs, or for those of the set."),
    (r"sync_all|sync|team_sync", "Waits for the PEs; completes nothing."),
    (r"TYPE_p", "Writes one element."),
    (r"TYPE_g", "Reads one element."),
    (r"(?:TYPE_)?put(?:SIZE)?", "Writes `nelems` elements; returns when `source` may be reused."),
    (r"(?:TYPE_)?get(?:SIZE)?", "Reads `nelems` elements; returns when `dest` is filled."),
    (r"(?:TYPE_)?put(?:SIZE)?_nbi", "Writes; returns at once. `source` must not change before quiet."),
    (r"(?:TYPE_)?get(?:SIZE)?_nbi", "Reads; returns at once. `dest` is filled after quiet."),
    (r"(?:TYPE_)?i(put|get)(?:SIZE)?", "The same with strides in elements on each side."),
    (r"(?:TYPE_)?ib(put|get)(?:SIZE)?", "The same with blocks of `bsize` elements at each stride."),
    (r"(?:TYPE_)?put(?:SIZE)?_signal(?:_nbi)?", "Writes, then updates the signal: who sees the signal sees the data."),
    (r"signal_(?:add|set)", "Updates a signal without data."),
    (r"signal_fetch", "Reads a signal of this PE."),
    (r"signal_wait_until", "Waits until a signal of this PE compares true; returns its value."),
    (r"TYPE_(?:atomic_)?(?:fetch_add|fadd)(_nbi)?", "Adds, and returns the old value."),
    (r"TYPE_(?:atomic_)?(?:fetch_inc|finc)(_nbi)?", "Adds 1, and returns the old value."),
    (r"TYPE_(?:atomic_)?(?:compare_swap|cswap)(_nbi)?", "Stores `value` where `cond` is found; returns the old value."),
    (r"TYPE_(?:atomic_)?swap(_nbi)?", "Stores, and returns the old value."),
    (r"TYPE_(?:atomic_)?fetch(_nbi)?", "Reads atomically."),
    (r"TYPE_(?:atomic_)?set", "Stores atomically."),
    (r"TYPE_(?:atomic_)?(?:add|inc)", "Adds a value, or 1."),
    (r"TYPE_atomic_fetch_(?:and|or|xor)(_nbi)?", "Combines bits, and returns the old value."),
    (r"TYPE_atomic_(?:and|or|xor)", "Combines bits."),
    (r"(?:TYPE_)?wait(?:_until)?", "Waits until a variable of this PE compares true."),
    (r"TYPE_wait_until_(all|any|some)(_vector)?", "Waits for several variables: all, any one, or at least one."),
    (r"TYPE_test(_all|_any|_some)?(_vector)?", "The same without waiting."),
    (r"(?:TYPE_)?alltoalls?(?:SIZE|mem)?", "Block k of `source` goes to PE k; with `s`, elements at strides."),
    (r"(?:TYPE_)?broadcast(?:SIZE|mem)?", "The root's `source` goes to `dest` of all PEs of the team."),
    (r"(?:TYPE_)?f?collect(?:SIZE|mem)?", "The sources of all PEs one after the other; with `f` all have one length."),
    (r"TYPE_\w+_reduce", "The result of all PEs' elements, on all PEs; the same bits in each run."),
    (r"TYPE_sum_(?:in|ex)scan", "The sum over the PEs before this one, with this one (in) or without it (ex)."),
    (r"TYPE_\w+_to_all", "A reduction over an active set. Deprecated: use teams."),
    (r"(?:set|clear|test)_lock", "A lock for all PEs: waits for it, gives it back, or tries it. First come, first served."),
    (r"(?:set|clear)_cache\w*|udcflush\w*|clear_cache\w*", "Does nothing. Deprecated."),
]
COMPILED = [(re.compile(pattern), sentence) for pattern, sentence in SENTENCES]


def described(name):
    """The sentence for a family, "" for those of Weft itself, whose headers say it."""
    if name.startswith("weft_"):
        return ""
    short = re.sub(r"^p?shmem_", "", name)
    sentence = next((sentence for pattern, sentence in COMPILED if pattern.fullmatch(short)), None)
    if sentence is None:
        raise SystemExit(f"build_site: nothing says what {name} does; add it to SENTENCES in scripts/site_pages/operations.py")
    return re.sub(r"`([^`]*)`", r"``\1``", sentence)
