"""What the engine asks its processes, and what they reply, as JSON on a pipe: declared once, read at both ends."""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar, get_args

from msgspec import Raw, Struct

from bench.plan.case import Point
from bench.plan.work import Roof, Work
from bench.sampling.inputs import InputValues, TimedCall
from bench.store.record import Status
from bench.store.typed import Amount, Count, Positive, Seconds

R = TypeVar("R")


class Request(Struct, Generic[R], frozen=True, tag=True):
    """A request; the type of its reply stands in the brackets of its base."""

    reply: ClassVar[Any] = None

    def __init_subclass__(cls, **_config: Any) -> None:
        """Keep the type of the reply."""
        (cls.reply,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]


class Posted(Struct):
    """A request on the pipe; replies and stages have its id."""

    id: str
    request: Raw


class Working(Struct, tag=True):
    """A process announces what it is about to do, in case it dies there."""

    id: str
    stage: str


class Replied(Struct, tag=True):
    """The reply to a request."""

    id: str
    reply: Raw


# A server


class Start(Request[None], frozen=True):
    """Say that torch is imported."""


class Warm(Request[None], frozen=True):
    """Use once what forked processes will use.

    That is what torch imports to trace, or to compute gradients, the compiler if an implementation needs it, and
    libraries that models come from.
    """

    traces: bool
    gradients: bool
    implementations: Sequence[str] = ()
    libraries: Sequence[str] = ()


class Fork(Request[int], frozen=True):
    """Fork a process for a role, and say its id; its pipe and its log come as descriptors."""

    role: str


class Reap(Request[int], frozen=True):
    """Wait for the end of a forked process, and say its exit status, as in `subprocess`."""

    pid: int


# The machine, and modules


class Checked(Struct, tag=True):
    """Facts of torch's about the machine, and a line for each implementation or GPU that can't be used.

    `obstacles` says why torch can't use a device, empty if it can. `runtimes` are versions of other runtimes by
    package. `modules` has the file and digest of the code that names of the user's own bring in.
    """

    mistakes: list[str]
    obstacles: dict[str, str]
    facts: dict[str, Any]
    runtimes: dict[str, str]
    modules: dict[str, tuple[str, str]]


class Check(Request[Checked], frozen=True):
    """Describe the machine; import the implementations that are needed, and the own layers with them."""

    implementations: Sequence[str]
    needed: Sequence[str]
    layers: Sequence[str]
    devices: Sequence[str]


class Looked(Struct, tag=True):
    """What was seen at a module, or how that ended; `raised` is the error of user code behind it."""

    status: Status
    detail: str = ""
    raised: str = ""
    seen: dict[str, Any] = {}


class Look(Request[Looked], frozen=True):
    """Look at the attention of a point's model; try these settings."""

    point: Point
    seed: int
    settings: Sequence[str]


class Shape(Request[Looked], frozen=True):
    """Say the columns that a module shows."""

    point: Point


class Describe(Request[Looked], frozen=True):
    """Describe the module of a side of a duel: its shapes, its weights and the code that it brings in."""

    point: Point
    implementation: str


# A case


class Outcome(Struct, tag=True):
    """How a case stands or ended, and why; `metrics` is what was measured, by name.

    `own_cause` is False if the system lacked something, which is no fault of the case.
    """

    status: Status = "ok"
    detail: str = ""
    metrics: dict[str, Any] = {}
    own_cause: bool = True

    def end(self, status: str, detail: str) -> None:
        """End the case with a status; nothing more is measured."""
        self.status, self.detail = status, detail


class Arrive(Request[None], frozen=True):
    """Begin to use the device of a case, and the compiler in a folder; nothing of a user is imported."""

    point: Point
    implementation: str
    cache: str


class Prepared(Struct, tag=True):
    """A case after its first calls and its warm-up.

    `call_s` are the seconds of a call, `calls` the calls of a timing. `remark` is what the implementation says about
    its precision, if that explains an incorrect output. `reuses` says that all calls return the same memory.
    """

    metrics: dict[str, Any]
    call_s: Seconds
    calls: Positive
    remark: str = ""
    reuses: bool = False
    import_s: Amount = 0.0


class Prepare(Request[Prepared | Outcome], frozen=True):
    """Prepare a case.

    `seed` is that of weights and inputs, `order_seed` that of the choices that the process makes. `inputs` has the
    values of the inputs that are checked outside of the rounds, `files` the paths for the outputs of the first calls.
    A `thorough` measurement, the first of a case, also inspects a call. The warm-up takes at most `warm_up_s`, the
    preparation runs on `core`, if one is given. `cache` is the folder of the compiler's cache. Weights and values are
    those of the file `given`, if that is not None.
    """

    point: Point
    implementation: str
    seed: int
    order_seed: int
    inputs: dict[str, InputValues]
    thorough: bool
    warm_up_s: float
    core: int | None
    files: dict[str, str]
    cache: str
    given: str | None = None


class Sampled(Struct, tag=True):
    """A sample: seconds per call of its timings, context switches, and the processor's seconds in all timings.

    `host_s` are the host's seconds per call in the timing that counts, None where the host does the work itself.
    """

    timings_s: list[Seconds]
    switches: Count
    used_s: Amount
    host_s: Seconds | None = None


class Sample(Request[Sampled | Outcome], frozen=True):
    """Take a sample, with a timing for each key of inputs, on a core from now on if one is given."""

    keys: Sequence[int]
    core: int | None


class Finish(Request[Outcome], frozen=True):
    """End the rounds: hand over the outputs of timed calls and of a last call, of which each takes `call_s`."""

    call_s: float
    core: int | None
    files: dict[str, str]


# The judge


class Expected(Struct, tag=True):
    """The least work of a call, the factor of the peaked input, and what is odd about what is expected."""

    work: Work
    peak: float
    remark: str


class Expect(Request[Expected | Outcome], frozen=True):
    """Compute what is expected of inputs, by the places of their windows.

    A file that is `given` gets weights and values, for another side of a duel.
    """

    point: Point
    seed: int
    shifts: dict[str, int]
    given: str | None


class Compared(Struct, tag=True):
    """Error and tolerance of outputs, why they are incorrect, and which timed calls they are of."""

    error: float | None
    tolerance: float | None
    reason: str
    calls: list[TimedCall] = []


class Compare(Request[Compared | Outcome], frozen=True):
    """Compare the output in a file with what is expected of a check."""

    check: str
    outputs: str


class CompareTimed(Request[Compared | Outcome], frozen=True):
    """Replay the timed calls whose outputs are in a file, and compare."""

    outputs: str


class Rates(Request[Roof], frozen=True):
    """Measure the highest rates of the device in some turns and seconds, on a core if one is given.

    They are 0 if there is no memory for that.
    """

    turns: int
    least_s: float
    core: int | None


# A profile


class Profiled(Struct, tag=True):
    """A profile as JSON, and torch's facts about the machine; or the reason why there is none."""

    reason: str = ""
    profile: dict[str, Any] = {}
    facts: dict[str, Any] = {}


class Trace(Request[Profiled], frozen=True):
    """Profile a case, and write its trace to a path."""

    point: Point
    implementation: str
    path: str
