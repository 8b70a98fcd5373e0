"""The kinds of devices, and all that depends on the kind and needs no torch; `bench.measure.devices` has the rest."""

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
"""What each of them answers."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of device.

    `timings` are the ways to time a call, the usual one first. `products` and `copied_bytes` are the work that measures
    its rates: sides of square matrices, where small ones find gaps on a busy machine and many cores need large ones,
    and a copy that is larger than the caches. At `doubling_flops` operations of a call a point takes twice as long as
    the smallest one.
    `sweep` is measured if none is named.
    """

    name: str
    title: str
    """How sentences call it."""
    timings: tuple[str, ...]
    is_timed_by_host: bool
    """Whether the process that makes a call also does its work: then its processor's seconds are those of the call."""
    has_cores: bool
    """Whether calls run on cores that a process can choose."""
    is_in_host_memory: bool
    """Whether tensors lie in the host's memory: then its allocator counts, and what is free there."""
    is_forked_warm: bool
    """Whether its processes are forked from one that has used the compiler and imported libraries. These ask CUDA which
    GPUs there are, and no process that is forked later can use one."""
    variables: Mapping[str, str]
    """The environment variables that its processes have from their start."""
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
    variables={"TORCHINDUCTOR_COMPILE_THREADS": "1"},  # else the first Triton kernel starts processes that stay
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
    """Return the sweep that is measured if none is named: that of the devices' kind, the CPU's for none or several."""
    kinds = {KINDS.get(device.partition(":")[0], CPU) for device in devices}
    return kinds.pop().sweep if len(kinds) == 1 else CPU.sweep


def numbered(device: str) -> str:
    """Return the name under which a device's facts are kept: `cuda` is `cuda:0`."""
    return "cuda:0" if device == CUDA.name else device
