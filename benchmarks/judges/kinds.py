"""The planted bugs that the judges get: kernels of integration_test/sim/bugs, each with one bug.

A kind has a title, the file without .ptx, and the bug of that file. The names by which fp4-sim must
report a bug are the rules that the file lists. For a bug that the file lists as `error` or
`deadlock`, `says` is what the report must say.
"""
import typing


class Kind(typing.NamedTuple):
    title: str
    file: str
    bug: str
    says: str | None = None

    @property
    def program(self):
        return f"{self.file} {self.bug}"


NEVER = "was never written"
DEADLOCK = "deadlock"
KINDS = [
    # Threads of a block
    Kind("no barrier between writers and readers", "named", "unordered", NEVER),
    Kind("shared memory used again without a barrier", "union", "unordered"),
    Kind("two buffers that overlap", "union", "overlap"),
    Kind("no __syncwarp between lanes", "reduce", "warp"),
    Kind("shuffle in a warp that a branch has parted", "reduce", "parted", "waits for lanes"),
    Kind("barrier of fewer threads than meet", "reduce", "few-threads"),
    Kind("barrier of more threads than there are", "reduce", "many-threads", DEADLOCK),
    Kind("one barrier number for two exchanges", "barrier-number", "collision"),
    Kind("ring of waits in the first round", "exchange", "wait-first", DEADLOCK),
    Kind("lanes that wait for others of their warp", "exchange", "whole-mask", DEADLOCK),
    Kind("__syncthreads in one role of several", "persistent", "all-threads", DEADLOCK),
    # Bounds and contents
    Kind("load of global memory out of bounds", "reduce", "unguarded", "out of bounds"),
    Kind("store to shared memory out of bounds", "reduce", "past-end", "out of bounds"),
    Kind("misaligned load", "reduce", "misaligned", "must be a multiple of 4"),
    Kind("shared memory that nobody wrote", "reduce", "unwritten", NEVER),
    Kind("global memory that nobody wrote", "scale-column", "padding-left"),
    # Copies
    Kind("cp.async: a group too few waited for", "cp-async", "one-behind"),
    Kind("cp.async: stage filled before it is read", "cp-async", "refilled"),
    Kind("bulk store without a proxy fence", "store", "unfenced"),
    Kind("bulk store: source overwritten", "store", "reused"),
    Kind("bulk store: a group too few waited for", "store", "one-behind"),
    Kind("bulk store not waited for at the exit", "union", "unwaited"),
    Kind("bulk copy not waited for", "ring", "unwaited", NEVER),
    # Pipelines
    Kind("stage released before it is read", "ring", "early-arrival"),
    Kind("stage filled without waiting for its release", "ring", "lapped"),
    Kind("consumer does not flip its phase", "ring", "constant-phase", DEADLOCK),
    Kind("producer does not flip its phase", "ring", "producer-phase"),
    Kind("mbarrier of too few arrivals", "ring", "few-arrivals"),
    Kind("mbarrier of too many arrivals", "ring", "many-arrivals", DEADLOCK),
    Kind("expect_tx of too few bytes", "ring", "few-bytes", "more were delivered than expected"),
    Kind("expect_tx of too many bytes", "ring", "many-bytes", DEADLOCK),
    Kind("expect_tx without an arrival", "bare-expect", "no-arrival", DEADLOCK),
    Kind("mbarrier used before its initialization", "ring", "init-unordered"),
    Kind("roles that wait for each other", "late-release", "gated", DEADLOCK),
    Kind("stage and parity begin anew with each tile", "persistent", "restarted", DEADLOCK),
    Kind("bytes of a copy that is predicated off", "persistent", "row-guard", DEADLOCK),
    Kind("warp that returns without its arrivals", "persistent", "returned", DEADLOCK),
    # Clusters
    Kind("multicast mask without one CTA", "multicast", "one-cta", "expected and not delivered"),
    Kind("multicast to an mbarrier that is not fenced", "multicast", "init-relaxed"),
    Kind("store to a CTA that has not begun", "peer", "peer-not-ready", "no mbarrier is initialised"),
    Kind("relaxed arrival at another CTA", "peer", "relaxed-arrival"),
    Kind("CTA leaves while another reads its memory", "exit", "early-exit", "which has exited"),
    Kind("st.async not waited for", "st-async", "unwaited", NEVER),
    Kind("st.async: expect_tx of too few bytes", "st-async", "few-bytes"),
    Kind("bytes of four CTAs expected where two count", "pair-bytes", "whole-cluster", DEADLOCK),
    # Warp group products
    Kind("wgmma without wgmma.fence", "wgmma", "unfenced"),
    Kind("wgmma: result used without a wait", "wgmma", "unwaited", "uses a register of the wgmma"),
    Kind("wgmma: operands without a proxy fence", "wgmma", "proxy"),
    Kind("wgmma: operand overwritten", "wgmma", "refilled"),
    # Between blocks and launches
    Kind("flag without a release", "flag", "relaxed-release"),
    Kind("flag with a release of too narrow a scope", "flag", "narrow-release"),
    Kind("sums of blocks without a fence", "last-block", "unfenced"),
    Kind("dependent launch without a wait", "dependent", "no-wait"),
    Kind("launch that waits for the next one", "launches", "circular", "do not wait for it"),
    # Tensor memory
    Kind("tensor memory read before the commit", "epilogue", "unwaited"),
    Kind("tensor memory released while it is read", "epilogue", "undrained"),
    Kind("tcgen05 operation without a commit", "epilogue", "uncommitted", DEADLOCK),
    Kind("tensor memory freed while it is used", "epilogue", "freed"),
    Kind("tensor memory not freed", "epilogue", "leaked", "exits with tensor memory allocated"),
    Kind("tensor memory of each tile kept", "tile-columns", "kept", DEADLOCK),
    Kind("two CTAs of an SM that each want more columns", "columns", "greedy", DEADLOCK),
    Kind("commit to one CTA of a pair", "pair-commit", "own-mask", DEADLOCK),
    Kind("arrival at one's own mbarrier, not the leader's", "pair-commit", "own-barrier", DEADLOCK),
    Kind("no tcgen05 fence behind a wait", "epilogue", "fence-after"),
    # Cluster launch control
    Kind("response used before it is there", "requests", "unwaited", NEVER),
    Kind("response released before it is read", "requests", "released"),
    Kind("response never released", "requests", "untaken", DEADLOCK),
    Kind("request after one that failed", "requests", "asked-again", "a request after one that failed"),
    Kind("roles that disagree about the last tile", "group-bounds", "old-end", DEADLOCK),
    Kind("response that the peer did not announce", "pair-requests", "peer-unannounced", DEADLOCK),
]
