"""The kinds of devices and everything about them that needs no torch; `bench.measure.devices` has the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HOST, COLD, HOT, GRAPH = "host", "device-cold", "device-hot", "graph"
"""The ways to time a call."""

QUESTIONS: dict[str, str] = {
    HOST: "for a caller who waits (timing host)",
    COLD: "on the device alone (timing device-cold)",
    HOT: "on the device alone, back to back (timing device-hot)",
    GRAPH: "as a CUDA graph (timing graph)",
}
"""The question that each of them answers."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of device.

    `timings` are the ways to time a call, the usual one first. `products` and `copied_bytes` define the work that
    measures its rates: `products` are sides of square matrices, small ones for gaps on a busy machine and large ones
    for many cores; the copy is larger than the caches. A point with `doubling_flops` operations per call takes twice
    as long as the smallest one.
    `sweep` is the default.
    """

    name: str
    title: str
    """Its name in sentences."""
    timings: tuple[str, ...]
    is_timed_by_host: bool
    """Whether the calling process does the work itself, so that its CPU time includes the call's."""
    has_cores: bool
    """Whether a process can choose the cores that its calls run on."""
    is_in_host_memory: bool
    """Whether tensors are in host memory, so that its allocator and its free memory matter."""
    is_forked_warm: bool
    """Whether its processes are forked from one that has used the compiler and imported libraries. That queries CUDA,
    and a process that is forked afterwards can't use a GPU."""
    variables: Mapping[str, str]
    """The environment variables that its processes start with."""
    products: tuple[int, ...]
    copied_bytes: int
    doubling_flops: float
    sweep: str


CPU = Kind(
    name="cpu",
    title="CPU",
    timings=(HOST,),
    is_timed_by_host=True,
    has_cores=True,
    is_in_host_memory=True,
    is_forked_warm=True,
    variables={},
    products=(256, 512, 1024, 2048, 4096),
    copied_bytes=1 << 26,
    doubling_flops=3e9,  # of seven runs, replayed, 2e9 to 4e9 suit best
    sweep="quick",
)
CUDA = Kind(
    name="cuda",
    title="GPU",
    timings=(COLD, HOT, GRAPH, HOST),
    is_timed_by_host=False,
    has_cores=False,
    is_in_host_memory=False,
    is_forked_warm=False,
    variables={"TORCHINDUCTOR_COMPILE_THREADS": "1"},  # else the first Triton kernel starts compile workers that stay
    products=(8192, 16384),
    copied_bytes=1 << 30,
    doubling_flops=3e12,  # a guess
    sweep="gpu",
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (CPU, CUDA)}


def kind(device: str) -> Kind:
    """Return the kind of a device: cpu, cuda or cuda:<number>."""
    return KINDS[device.partition(":")[0]]


def default_sweep(devices: Iterable[str]) -> str:
    """Return the default sweep for the devices' kind; the CPU's for no device or several kinds."""
    kinds = {KINDS.get(device.partition(":")[0], CPU) for device in devices}
    return kinds.pop().sweep if len(kinds) == 1 else CPU.sweep


def numbered(device: str) -> str:
    """Return the name under which facts about a device are kept: `cuda:0` for `cuda`."""
    return "cuda:0" if device == CUDA.name else device
