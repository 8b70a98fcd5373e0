"""The engine's requests to its processes and their replies, as JSON on a pipe; both ends use these declarations."""

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
    """A request; its type parameter is the type of the reply."""

    reply: ClassVar[Any] = None

    def __init_subclass__(cls, **_config: Any) -> None:
        """Store the type of the reply."""
        (cls.reply,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]


class Posted(Struct):
    """A request on the pipe; its replies and stages carry the same id."""

    id: str
    request: Raw


class Working(Struct, tag=True):
    """A process announces the stage that begins, in case it dies in it."""

    id: str
    stage: str


class Replied(Struct, tag=True):
    """The reply to a request."""

    id: str
    reply: Raw


# A server


class Start(Request[None], frozen=True):
    """Reply as soon as torch is imported."""


class Warm(Request[None], frozen=True):
    """Import what forked processes will use.

    These are torch's modules for tracing and for gradients, the compiler if an implementation needs it, and the
    libraries of models.
    """

    traces: bool
    gradients: bool
    implementations: Sequence[str] = ()
    libraries: Sequence[str] = ()


class Fork(Request[int], frozen=True):
    """Fork a process for a role, and reply with its id; its pipe and its log come as file descriptors."""

    role: str


class Reap(Request[int], frozen=True):
    """Wait for the end of a forked process, and reply with its exit status, as in `subprocess`."""

    pid: int


# The machine, and modules


class Checked(Struct, tag=True):
    """torch's facts about the machine, and in `mistakes` a line for each implementation or GPU that can't be used.

    `obstacles` says why torch can't use a device, empty if it can. `runtimes` are versions of other runtimes by
    package. `modules` has the file and the digest of each module that the user's names import.
    """

    mistakes: list[str]
    obstacles: dict[str, str]
    facts: dict[str, Any]
    runtimes: dict[str, str]
    modules: dict[str, tuple[str, str]]


class Check(Request[Checked], frozen=True):
    """Describe the machine; import the needed implementations and the user's own layers."""

    implementations: Sequence[str]
    needed: Sequence[str]
    layers: Sequence[str]
    devices: Sequence[str]


class Looked(Struct, tag=True):
    """The result of a look at a module, or the status of its failure; `raised` is the error of user code behind it."""

    status: Status
    detail: str = ""
    raised: str = ""
    seen: dict[str, Any] = {}


class Look(Request[Looked], frozen=True):
    """Look at the attention of a point's model, and try these settings."""

    point: Point
    seed: int
    settings: Sequence[str]


class Shape(Request[Looked], frozen=True):
    """Find the columns that describe a module."""

    point: Point


class Describe(Request[Looked], frozen=True):
    """Describe the module of one side of a duel: its shapes, its weights and the code that it imports."""

    point: Point
    implementation: str


# A case


class Outcome(Struct, tag=True):
    """The status of a case and its reason; `metrics` has the measured values by name.

    `own_cause` is False if the system, not the case, caused the failure.
    """

    status: Status = "ok"
    detail: str = ""
    metrics: dict[str, Any] = {}
    own_cause: bool = True

    def end(self, status: str, detail: str) -> None:
        """Set the status with which the case ends, and the reason."""
        self.status, self.detail = status, detail


class Arrive(Request[None], frozen=True):
    """Initialise the device of a case, and the compiler with its cache folder; import no user code."""

    point: Point
    implementation: str
    cache: str


class Prepared(Struct, tag=True):
    """A case after its first calls and its warm-up.

    `call_s` is the seconds of a call, `calls` the calls of a timing. `reuses` says whether all calls return the same
    memory.
    """

    metrics: dict[str, Any]
    call_s: Seconds
    calls: Positive
    reuses: bool = False


class Prepare(Request[Prepared | Outcome], frozen=True):
    """Prepare a case.

    `seed` is for weights and inputs, `order_seed` for the process's own choices. `inputs` has the values of the inputs
    that are checked outside of the rounds, `files` the paths for the outputs of the first calls. A `thorough`
    measurement, the first of a case, also inspects a call. The warm-up takes at most `warm_up_s`, the preparation runs
    on `core`, if given. `cache` is the folder of the compiler's cache. The file `given`, if not None, has weights and
    values.
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
    """A sample: seconds per call of its timings, involuntary context switches, and processor seconds of all timings.

    `host_s` is the host's seconds per call in the timing that counts; None if the host does the work itself.
    """

    timings_s: list[Seconds]
    switches: Count
    used_s: Amount
    host_s: Seconds | None = None


class Sample(Request[Sampled | Outcome], frozen=True):
    """Take a sample with one timing per key; move to a core first, if one is given."""

    keys: Sequence[int]
    core: int | None


class Finish(Request[Outcome], frozen=True):
    """End the rounds: hand over the outputs of timed calls and of a last call. A call takes `call_s` seconds."""

    call_s: float
    core: int | None
    files: dict[str, str]


# The judge


class Expected(Struct, tag=True):
    """The least work of a call, the factor of the peaked input, and a remark about the reference, empty without one."""

    work: Work
    peak: float
    remark: str


class Expect(Request[Expected | Outcome], frozen=True):
    """Compute the reference for inputs with these window shifts, by name.

    The file `given`, if not None, gets weights and values for the other side of a duel.
    """

    point: Point
    seed: int
    shifts: dict[str, int]
    given: str | None


class Compared(Struct, tag=True):
    """Error and tolerance of outputs, the reason if they are incorrect, and the timed calls that returned them."""

    error: float | None
    tolerance: float | None
    reason: str
    calls: list[TimedCall] = []


class Compare(Request[Compared | Outcome], frozen=True):
    """Compare the output in a file with the reference of a check."""

    check: str
    outputs: str


class CompareTimed(Request[Compared | Outcome], frozen=True):
    """Replay the timed calls whose outputs are in a file, and compare the outputs."""

    outputs: str


class Rates(Request[Roof], frozen=True):
    """Measure the highest rates of the device for at least these turns and seconds, on a core if one is given.

    The rates are 0 if memory runs out.
    """

    turns: int
    least_s: float
    core: int | None


# A profile


class Profiled(Struct, tag=True):
    """A profile for JSON and torch's facts about the machine, or the reason why there is none."""

    reason: str = ""
    profile: dict[str, Any] = {}
    facts: dict[str, Any] = {}


class Trace(Request[Profiled], frozen=True):
    """Profile a case, and write its trace to a path."""

    point: Point
    implementation: str
    path: str
