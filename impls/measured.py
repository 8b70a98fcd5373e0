"""Attention by a table of measured choices: each shape gets the core that was the best one at the nearest point."""

import platform
import re
import warnings
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from impls.attend import sdpa
from impls.catalogue import CAUSAL, NO_MASK, parse
from impls.contract import Attend, Implementation, Unresolved, Unsupported, declared_options, with_attend
from impls.lookup import resolve
from impls.sdpa_calls import CORE_DIMENSIONS, ORIGINAL, SDPAReplaced, stand_in
from impls.table import SDPA, ChoiceTable, WrongTable, load, nearest

MASKS = (NO_MASK, CAUSAL)


def adapt(layer: nn.Module, *, table: str = "") -> Implementation:
    """Return the layer with the core that the table in a file names for each shape.

    Raises `Unsupported` without a table, Unresolved for a file that is no table, and as `with_attend` does.
    """
    if not table:
        raise Unsupported("it needs a table: measured[table=FILE]; the command export writes one")
    try:
        return with_attend(attend_by(table))(layer)
    except WrongTable as error:
        raise Unresolved(str(error)) from None


def attend_by(path: str | Path) -> Attend:
    """Return the `attend(q, k, v, scale)` that follows the table in a file.

    The core for a shape is chosen at its first call, and is `sdpa` if no measured point is near, or if the one that
    was chosen fails there. What no table knows goes to `sdpa` too: a mask tensor, dropout, queries of another number
    than keys. Warns once of each: another machine, torch or number of threads was measured; a core can't be used here.
    Raises WrongTable; what is returned raises ValueError for a mask that is neither None nor "causal".
    """
    return _attend_by(path, torch.get_num_threads())


@cache
def _attend_by(path: str | Path, threads: int) -> Attend:
    table = load(path, threads)
    if differing := _differences(table):
        warnings.warn(f"the table {path} was measured with {differing}", stacklevel=3)
    cores, chosen, choices = _cores(table), dict[Any, Attend](), table.choices

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        *,
        mask: str | None = None,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        enable_gqa: bool = False,
    ) -> Tensor:
        shape = q.shape  # read once: a microsecond counts here
        if attn_mask is not None or dropout_p or shape != k.shape or len(shape) != CORE_DIMENSIONS:
            if dropout_p:
                return ORIGINAL(q, k, v, attn_mask, dropout_p, mask == CAUSAL, scale=scale, enable_gqa=enable_gqa)
            return sdpa.attend(q, k, v, scale, mask=mask, attn_mask=attn_mask, enable_gqa=enable_gqa)
        wants_gradients = torch.is_grad_enabled() and q.requires_grad
        key = shape, v.shape, q.dtype, q.device, wants_gradients, mask
        core = chosen.get(key)
        if core is None:
            if mask is not None and not (isinstance(mask, str) and mask in MASKS):
                given = f"{mask!r}" if isinstance(mask, str) else f"a {type(mask).__name__}"
                raise ValueError(f'mask must be None or "causal", got {given}; a mask tensor is attn_mask')
            kind = q.device.type, str(q.dtype).removeprefix("torch."), wants_gradients, mask or NO_MASK
            name = nearest(choices, kind, (shape[2], shape[3], shape[0] * shape[1]))
            core = chosen[key] = _usable(cores[name, mask or NO_MASK], cores[SDPA, mask or NO_MASK], q, k, v, scale)
        return core(q, k, v, scale)

    attend.says = table.checked  # type: ignore[attr-defined]  # functions take attributes
    return attend


@contextmanager
def in_place_of_sdpa(path: str | Path) -> Iterator[None]:
    """Have `torch.nn.functional.scaled_dot_product_attention` follow the table in a file inside; raises WrongTable."""
    with SDPAReplaced(stand_in(attend_by(path))):
        yield


def _cores(table: ChoiceTable) -> dict[tuple[str, str], Attend]:
    """Return the cores of a table by name and mask; sdpa stands in for one that can't be used here, with a warning."""
    wanted = {(name, mask) for (*_, mask), _, name in table.choices}
    cores, refused = dict[tuple[str, str], Attend](), dict[str, Exception]()
    for mask in MASKS:
        cores[SDPA, mask] = _core(SDPA, mask)
        for name in {name for name, _ in wanted} - {SDPA}:
            try:
                cores[name, mask] = _core(name, mask)
            except (LookupError, ValueError, TypeError, Unsupported) as error:
                cores[name, mask] = cores[SDPA, mask]
                refused |= {name: error} if (name, mask) in wanted else {}
    if refused:
        reasons = "; ".join(f"{name} ({error})" for name, error in sorted(refused.items()))
        warnings.warn(f"sdpa stands in for what can't be used here of the table: {reasons}", stacklevel=4)
    return cores


def _core(name: str, mask: str) -> Attend:
    """Return the attend that an implementation puts in place of a layer's core.

    Raises `Unsupported` if it replaces more than the core, and what `resolve` and the adapter raise.
    """
    layer, parsed = nn.Module(), parse(name)
    layer.mask, layer.attend = mask, sdpa.attend  # type: ignore[assignment]  # no submodules
    adapt = resolve(parsed.base)
    if unknown := parsed.options.keys() - declared_options(adapt):
        raise Unresolved(f"it has no option {', '.join(sorted(unknown))}")
    core = getattr(adapt(layer, **parsed.options), "attend", None)
    if core is None:
        raise Unsupported("it replaces more than the core")
    return cast(Attend, core)


def _usable(core: Attend, usual: Attend, *inputs: Any) -> Attend:
    """Return a core if it takes the inputs, else the usual one."""
    if core is usual or torch.compiler.is_compiling():
        return core
    try:
        core(*inputs)
    except (RuntimeError, Unsupported):
        return usual
    return core


def _differences(table: ChoiceTable) -> str:
    """Return what differs here from the machine that a table was measured on, empty if nothing does."""
    devices = {kind[0] for kind, *_ in table.choices}
    gpus = {torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())}
    threads = table.threads if "cpu" in devices else frozenset()
    pairs: list[tuple[str, Set[Any], Set[Any]]] = [
        ("torch", {table.torch}, {torch.__version__}),
        ("CPU", {table.cpu}, {_cpu()}),
        ("GPU", table.gpus if "cuda" in devices else set(), gpus),
        ("threads", threads, {torch.get_num_threads()}),
    ]
    return "; ".join(
        f"{what} {', '.join(map(str, sorted(there)))} and not {', '.join(map(str, sorted(here))) or 'none'}"
        for what, there, here in pairs
        if there and not there & here
    )


def _cpu() -> str:
    """Return the CPU's model name, as tables have it."""
    with suppress(OSError):
        if match := re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M):
            return match[1]
    return platform.processor() or platform.machine()
