"""The share of a model's time in attention, and the measured gain of each setting."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from msgspec import structs

from bench.analyse.flags import is_biased
from bench.analyse.rows import Row, grouped, numbers
from bench.analyse.standing import DECIDED, NAMED, NOTHING, UNDECIDED, Choice, choice
from bench.plan.case import AS_IS, Point
from bench.plan.core import Core, Softmax
from bench.plan.verdicts import SLOWER
from bench.stats.estimates import UNKNOWN, Interval, interval, mean, t_quantile
from bench.store.looks import Seen, Times, Tried
from impls.catalogue import GRAPH, name_of

LITTLE = 1.1
"""Below this bound attention is not worth optimising."""

NUMBERS = (
    "speedup", "speedup_low", "speedup_high", "slowdown_high", "latency_s", "peak_bytes", "error", "compile_cold_s",
)  # fmt: skip
"""The columns of a setting's row that its answer has."""


@dataclass(frozen=True)
class Kind:
    """Layers with equal cores: the first core, the numbers of layers and of cores, and their share of the time."""

    core: Core
    layers: int
    cores: int
    share: float


@dataclass(frozen=True)
class Others:
    """Softmaxes outside cores at one place: the first, the layers of all, and their share of the time."""

    softmax: Softmax
    layers: Sequence[str]
    share: float


@dataclass(frozen=True)
class Advice:
    """The answer for a model at a point, from the `looks` of some processes and a run of its settings.

    `share` is the share of the time in attention cores, `layer_share` the share in their layers. `layers` are the
    kinds of layers with cores, `softmaxes` the places in the source of softmaxes outside cores.
    `alternatives` has an entry for each setting, and `rows` the rows of the run by setting, none if nothing was
    compared.
    """

    point: Point
    looks: Sequence[Seen] = field(repr=False)
    share: Interval
    layer_share: Interval
    layers: Sequence[Kind]
    softmaxes: Sequence[Others]
    alternatives: Sequence[Mapping[str, Any]] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)

    @property
    def choice(self) -> Choice:
        """The setting to use: the unchanged model, unless another setting is faster."""
        if self.as_is.get("status") != "ok":
            return Choice(NOTHING)
        best = choice([*self.rows.values()])
        if best.name in (AS_IS, "") or self.as_is["standing"] == SLOWER:
            return best
        bound = math.nan if self.as_is["slowdown_high"] is None else float(self.as_is["slowdown_high"])
        rivals = tuple(name for name in (best.name, *best.rivals) if name != AS_IS)
        return Choice(NAMED if bound <= DECIDED else UNDECIDED, AS_IS, bound, rivals)

    @property
    def recommendation(self) -> str | None:
        """The setting to use in place of the unchanged model; None if none is known to be faster."""
        is_told = self.choice.is_decided and not (self.gains_by_tracing or self.is_disturbed)
        return self.choice.name if is_told and self.choice.name != AS_IS else None

    @property
    def by_graph(self) -> bool:
        """Whether the choice replaces cores in the model's graph, because the model itself can't switch to it."""
        return any(each["name"] == self.choice.name and each["by"].startswith(GRAPH) for each in self.alternatives)

    @property
    def gains_by_tracing(self) -> bool:
        """Whether the choice replaces cores in the model's graph, and gains no more than the graph unchanged."""
        graph = self.rows.get(GRAPH, {})
        return self.by_graph and graph.get("status") == "ok" and not _is_faster(self.chosen, graph)

    @property
    def is_inline(self) -> bool:
        """Whether the model computes its cores inline, so that only the graph can bring in `sdpa`."""
        sdpa = self.first.settings.get("sdpa")
        return sdpa is not None and (sdpa.status == "unsupported" or sdpa.by.startswith(GRAPH))

    @property
    def is_disturbed(self) -> bool:
        """Whether other processes may have biased the gain of the choice."""
        return is_biased(self.chosen)

    @property
    def as_is(self) -> Row:
        """The row of the unchanged model; empty if nothing was compared."""
        return self.rows.get(AS_IS, {})

    @property
    def chosen(self) -> Row:
        """The row of the choice, empty if there is none."""
        return self.rows.get(self.choice.name, {})

    @property
    def first(self) -> Seen:
        """The look of the first process, which also tried the settings."""
        return self.looks[0]

    @property
    def call_s(self) -> float:
        """The median time of a plain call."""
        return float(np.median([call.plain_s for each in self.looks for call in each.calls]))

    @property
    def working(self) -> list[str]:
        """The settings that the model supports and that change it."""
        return [name for name, tried in self.first.settings.items() if tried.status == "ok"]

    @property
    def controls(self) -> list[str]:
        """The control of the settings that use the model's graph; empty if none does."""
        return [GRAPH] * any(tried.by.startswith(GRAPH) for tried in self.first.settings.values())

    @property
    def bound(self) -> Interval:
        """The most that a setting of attention alone can gain.

        It is unknown without a core, if attention may take all of the time, and if one operator computes whole layers,
        so that settings change more than attention.
        """
        ends = self.share.value, self.share.low, self.share.high
        if not self.layers or self.first.has_whole or 1.0 in ends:
            return UNKNOWN
        return Interval(*(1 / (1 - end) for end in ends))

    @property
    def is_little(self) -> bool:
        """Whether there is too little to gain to go on unasked, by the bound or because there is no core."""
        return self.bound.value < LITTLE or not (self.layers or self.first.untraced)


def seen(point: Point, looks: Sequence[Seen]) -> Advice:
    """Return the part of the answer that the looks of some processes give."""
    cores = _share(looks, lambda call: math.fsum(call.cores))
    layers = _share(looks, lambda call: call.layers)
    return Advice(point, looks, cores, layers, _kinds(looks), _others(looks))


def _kinds(looks: Sequence[Seen]) -> list[Kind]:
    """Return the kinds of layers with cores, the one with the most time first; a layer may have several cores."""
    groups = grouped(enumerate(looks[0].cores), lambda each: structs.replace(each[1], layer=""))
    kinds = [
        Kind(cores[0], len({core.layer for core in cores}), len(cores), _share(looks, _part("cores", places)).value)
        for places, cores in (zip(*group, strict=True) for group in groups.values())
    ]
    return sorted(kinds, key=lambda kind: -kind.share)


def _others(looks: Sequence[Seen]) -> list[Others]:
    """Return the softmaxes outside cores, grouped by lines and reason."""
    groups = grouped(enumerate(looks[0].others), lambda each: (each[1].lines, each[1].reason))
    return [
        Others(those[0], [each.layer for each in those], _share(looks, _part("others", places)).value)
        for places, those in (zip(*group, strict=True) for group in groups.values())
    ]


def _part(name: str, places: Iterable[int]) -> Callable[[Times], float]:
    """Return a function that sums a call's seconds in some of its cores or other softmaxes."""
    return lambda call: math.fsum(getattr(call, name)[place] for place in places)


def _share(looks: Sequence[Seen], part_s: Callable[[Times], float]) -> Interval:
    """Return the share of the time in a part of the calls: the mean of the processes' medians.

    For one process it is the mean over its calls.
    """
    if looks[0].untraced:
        return UNKNOWN
    values = [[part_s(call) / call.total_s for call in each.calls] for each in looks]
    share = interval(mean([float(np.median(own)) for own in values] if len(values) > 1 else values[0]))
    return Interval(*np.clip([share.value, share.low, share.high], 0.0, 1.0).tolist())


def compared(before: Advice, rows: Iterable[Row], settings: Iterable[str]) -> Advice:
    """Return the whole answer, with the rows of the model's run; `settings` are the requested ones, in order."""
    by_name = {str(row["implementation"]): row for row in rows}
    alternatives = [alternative(name, by_name.get(name), before.first.settings) for name in settings]
    return replace(before, alternatives=alternatives, rows=by_name)


def _is_faster(row: Row, graph: Row) -> bool:
    """Return whether a setting is faster than the model's graph, which has a speed-up but no slowdown."""
    (one, other), errors = numbers([row, graph], "speedup"), numbers([row, graph], "log_time_error")
    freedom = np.min(numbers([row, graph], "log_ratio_freedom"))
    return bool(math.log(one / other) > t_quantile(freedom) * np.hypot(*errors))  # False if one is unknown


def alternative(name: str, row: Row | None, tried: Mapping[str, Tried]) -> dict[str, Any]:
    """Return the facts about a setting from its row of results, or from the look if it was not measured.

    `by` says how the core was replaced: GRAPH if the model itself can't switch to it.
    """
    own, of = (tried.get(each, Tried("skipped")) for each in (name, name_of(name).compiled_from or name))
    if row is None:
        row = {"status": own.status, "detail": own.detail}
    return {
        "name": name,
        "status": row["status"],
        "detail": row["detail"] or "",
        "by": row.get("adapted_by") or of.by,
        "kernels": [*filter(None, (row.get("kernels") or "").split(";"))],
        **{column: row.get(column) for column in NUMBERS},
    }
