"""The answer of `advise`, as blocks before and after settings are compared and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from bench.analyse.advice import LITTLE, Advice, alternative
from bench.analyse.flags import launch_bound
from bench.analyse.rows import Row, grouped
from bench.analyse.standing import ALONE, FASTEST, NOTHING
from bench.plan.case import AS_IS, OF_LAYERS
from bench.plan.core import Core
from bench.show import intervals
from bench.show.answer import bound_by_host, speedup_cell, within, words
from bench.show.blocks import GAP, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Lines, Table
from bench.show.columns import IMPLEMENTATION, WITHIN, named
from bench.show.text import capital, counted, listed, memory_setting, parts, times
from bench.stats.estimates import MOST_FACTOR, Interval
from bench.store import units
from impls.catalogue import COMPILED, GRAPH, name_of

BACKENDS = {
    "sdpa_math": "MATH",
    "sdpa_flash": "FLASH_ATTENTION",
    "sdpa_efficient": "EFFICIENT_ATTENTION",
    "sdpa_cudnn": "CUDNN_ATTENTION",
}
"""The backend of each setting that allows only one."""

REASONS = {"same": "the same kernels as as_is"}
"""Why a setting was not measured, for statuses that don't say so."""

FUNCTION, HEADS = "F.scaled_dot_product_attention", "nn.MultiheadAttention"

NO_GAIN = 1.005
"""A smaller bound is written as 1.00x."""

COLUMNS = {
    "speedup": "vs as_is",
    "slowdown_high": "within",
    "latency_s": "latency",
    "memory_bytes": "memory",
    "compile_cold_s": "compile",
    "error": "error",
}
"""The columns of the table of settings, with their headings."""

LEGEND = "vs as_is: paired round by round; error: the largest deviation from float64, relative to the largest value"
"""The meaning of columns that only this table has."""


def before(advice: Advice) -> list[Block]:
    """Return the findings before anything is compared; the first line is the bound."""
    return [
        Lines([bound(advice)], HEAD),
        Lines([about(advice)]),
        Lines([*layers(advice), *softmaxes(advice)], QUIET, is_list=True, indent=2),
        Lines(rewriting(advice), is_list=True, indent=2),
        Code(proposals(advice)),
    ]


def stopped(advice: Advice) -> list[Block]:
    """Return why nothing is compared."""
    why = f"This is below {units.ratio(LITTLE)}, so no" if advice.layers else "No"
    how = f"--anyway compares them; a call takes {units.seconds(advice.call_s)}."
    return [Lines([f"{why} setting was compared. {how}"])]


def after(advice: Advice) -> list[Block]:
    """Return the table of settings, the recommendation and its lines to paste."""
    if not advice.rows:
        return [Lines(["Not measured in this time. Use a longer --within."], WARNING)]
    settings = [advice.rows[each["name"]] for each in advice.alternatives if each["status"] == "ok"]
    bound = [advice.chosen] if advice.chosen.get("host_s") and launch_bound(advice.chosen) else []
    return [
        Table(_columns(advice), [advice.as_is, *settings]),
        Lines(not_measured(advice), WARNING, is_list=True),
        GAP,
        Lines([recommendation(advice)], HEAD),
        Lines([*bound_by_host(bound, "Here", [advice.point.timing])]),
        Code(to_paste(advice)),
    ]


def ending(answers: Sequence[Advice], doubts: Sequence[str]) -> list[Block]:
    """Return doubts about a comparison, and notes on its columns and its allocator; empty without one."""
    points = [advice.point for advice in answers if advice.rows]
    has_bounds = any(row["slowdown_high"] is not None for advice in answers for row in advice.rows.values())
    notes = [*([WITHIN] if has_bounds else []), LEGEND, *memory_setting(points)] if points else []
    return [Lines(doubts, WARNING, is_list=True), Lines(notes, QUIET, is_list=True)]


def _columns(advice: Advice) -> list[Column]:
    def tone(row: Row) -> str:
        return GOOD if row["implementation"] == advice.recommendation else PLAIN

    setting = replace(IMPLEMENTATION, heading="setting", tone=tone)
    return [setting, *(replace(named(name, AS_IS), heading=heading) for name, heading in COLUMNS.items())]


def as_json(answers: Sequence[Advice]) -> str:
    """Return the answer as JSON; for several points the first one's answer, with all of them as `points`."""
    objects = [as_object(advice) for advice in answers]
    whole = {**objects[0], "points": objects} if len(objects) > 1 else objects[0]
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def as_object(advice: Advice) -> dict[str, Any]:
    """Return an answer as a JSON object; unknown numbers are null."""
    return {
        "model": advice.point.layer,
        "point": {name: value for name, value in vars(advice.point).items() if value is not None},
        **intervals.as_numbers("share", advice.share),
        **intervals.as_numbers("layer_share", advice.layer_share),
        **intervals.as_numbers("bound", advice.bound),
        "call_s": advice.call_s,
        "layers": [
            {"path": kind.core.layer, "count": kind.layers, "cores": kind.cores, "share": kind.share}
            | structs.asdict(kind.core)
            | {"proposal": proposal(kind.core) if advice.is_inline else []}
            for kind in advice.layers
        ],
        "softmaxes": [
            {**structs.asdict(of.softmax), "layers": of.layers, "share": of.share} for of in advice.softmaxes
        ],
        "untraced": advice.first.untraced,
        "baseline": _finite(alternative(AS_IS, advice.as_is or None, {})),
        "alternatives": [*map(_finite, advice.alternatives)],
        "recommendation": advice.recommendation,
        "paste": to_paste(advice),
        "processes": advice.as_is.get("processes", 0),
        "slowdown_high": intervals.finite(advice.as_is.get("slowdown_high")),
    }


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: intervals.finite(value) if isinstance(value, float) else value for name, value in values.items()}


def about(advice: Advice) -> str:
    """Return the model and its point: `timm:vit_small_patch16_224 · float32 · inference · B=8 · 1 thread`."""
    return " · ".join(parts(advice.point, without=OF_LAYERS))


def bound(advice: Advice) -> str:
    """Return the first line: the share of the time in attention, and the largest possible gain."""
    if advice.first.untraced:
        return f"The share of attention is unknown: {advice.first.untraced}"
    if not advice.layers:
        number = sum(len(each.layers) for each in advice.softmaxes)
        return f"No replaceable attention was found, but {counted(number, 'softmax', 'softmaxes')}"
    what = f"{'Replaceable attention' if advice.softmaxes else 'Attention'} takes {share(advice.share)} of the time"
    if advice.first.has_whole:
        return f"{what} when traced; the model itself runs whole layers as one operator, so settings change more"
    high = advice.bound.high if advice.bound.is_known else advice.bound.value
    if not high <= MOST_FACTOR * advice.bound.value:
        return f"{what}, but the gain of a setting has no known bound"
    gain = "speed up the model" if high < NO_GAIN else f"gain more than {times(high)}"
    return f"{what}, so no attention setting can {gain}"


def share(of: Interval) -> str:
    """Return a share with its interval: `12.3% [11.9, 12.7]`."""
    ends = f" [{100 * of.low:.1f}, {100 * of.high:.1f}]" if of.is_known else ""
    return f"{100 * of.value:.1f}%{ends}"


def layers(advice: Advice) -> list[str]:
    """Return the number of attention cores, the operators that compute them, and their layers' share of the time."""
    cores = advice.first.cores
    operators, classes = (
        listed([*dict.fromkeys(getattr(core, name) for core in cores)]) for name in ("operator", "class_name")
    )
    number = counted(len(cores), "attention core")
    whole = f"with projections these layers take {share(advice.layer_share)} of the time"
    return [f"{number} ({operators}) in {classes}; {whole}"] if cores else []


def softmaxes(advice: Advice) -> list[str]:
    """Return a line on softmaxes outside cores: where, their share of the time, and why."""
    places = [
        f"{counted(len(each.layers), 'softmax', 'softmaxes')} at {each.softmax.lines} "
        f"({100 * each.share:.1f}% of the time: {each.softmax.reason})"
        for each in sorted(advice.softmaxes, key=lambda each: -each.share)
    ]
    return [f"not replaced: {listed(places)}"] if places else []


def recommendation(advice: Advice) -> str:
    """Return what to use, or why the model stays as it is."""
    of = advice.choice
    if of.standing == NOTHING:
        return f"Nothing was compared, because as_is ended as {advice.as_is['status']}: {advice.as_is['detail']}"
    gain = speedup_cell(advice.chosen, AS_IS)
    alone = speedup_cell(advice.rows.get(GRAPH), AS_IS)
    graph = f"{GRAPH}, the traced model unchanged, is {alone or 'not known'}"
    cost = "the fastest" if of.standing == FASTEST else f"within {within(of)} of the fastest"
    if of.standing == ALONE:
        return "Keep the model unchanged, because no other setting was measured."
    if advice.is_disturbed:
        return "Not decided: other processes disturbed most samples. Close them and run again."
    if not of.is_decided:
        return f"{capital(words(of))}. A longer --within may decide."
    if advice.gains_by_tracing:
        return f"Keep the model unchanged: {of.name} is {gain} as fast in the traced model, but {graph}."
    if of.name == AS_IS:
        return f"Keep the model unchanged: it is {cost}."
    use = f"Use {of.name}: {cost}, {gain} as fast as the unchanged model."
    if not advice.by_graph:
        return use
    is_known = any(_has_line(kind.core) for kind in advice.layers)
    how = "Put the lines above into the source." if is_known else "There are no lines to propose for it yet."
    return f"{use} It was measured in the traced model ({graph}). {how}"


def rewriting(advice: Advice) -> list[str]:
    """Return what can replace cores that the model computes inline, or what prevents it."""
    cores = [kind.core for kind in advice.layers]
    obstacles = dict.fromkeys(core.obstacle for core in cores if core.obstacle)
    lines = [f"this core can't be replaced: {each}" for each in obstacles]
    narrow = {(core.shapes[0][-1], core.shapes[2][-1]) for core in cores if core.shapes[2][-1] < core.shapes[0][-1]}
    lines += [
        f"values have {of_v} channels, but queries have {of_q}; padding values to {of_q} may allow a fused kernel"
        for of_q, of_v in sorted(narrow)
    ]
    places = dict.fromkeys(core.lines for core in cores if _has_line(core)) if advice.is_inline else {}
    if not places:
        return lines
    inline = f"the model's source computes attention inline at {', '.join(filter(None, places))}"
    return [*lines, f"{inline}; for another backend, write there:"]


def _has_line(core: Core) -> bool:
    """Return whether a line can be written in place of a core."""
    return not (core.is_fused or core.obstacle or core.class_name == HEADS)


def proposals(advice: Advice) -> list[str]:
    """Return the lines to write in place of cores that no setting reaches, each once."""
    first: dict[str, list[str]] = {}
    for kind in advice.layers if advice.is_inline else ():
        if lines := proposal(kind.core):
            first.setdefault(lines[0], [f"# {kind.core.layer or 'the model itself'}", *lines])
    return [line for lines in first.values() for line in lines]


def proposal(core: Core) -> list[str]:
    """Return the call of torch's function that computes a core, and comments on its operands; empty without one."""
    if core.is_fused or core.obstacle:
        return []
    if core.class_name == HEADS:
        return [f"# {core.lines}: {HEADS} calls {FUNCTION} with need_weights=False"]
    mask = ["is_causal=True"] if core.is_causal else ["attn_mask=mask"] if core.mask else []
    q, k, v = map(list, core.shapes)
    notes = [f"in place of {core.lines or 'the core'}: {core.dtype} q {q}, k {k}, v {v}"]
    if core.mask and not core.is_causal:
        notes.append(f"mask in this call: {core.mask}; it is added to scores, or True keeps them")
    if core.unread:
        notes.append(f"return None for the weights at {core.unread}, because nothing reads them")
    return [
        f"{FUNCTION}({', '.join(['q', 'k', 'v', *mask, f'scale={core.scale:.6g}'])})",
        *(f"# {each}" for each in notes),
    ]


def not_measured(advice: Advice) -> list[str]:
    """Return the settings without a time, with a line for each reason."""
    left = [each for each in advice.alternatives if each["status"] != "ok"]
    reasons = grouped(left, lambda each: (each["status"], each["detail"]))
    return [
        f"{', '.join(each['name'] for each in those)}: "
        f"{REASONS.get(status) or ': '.join(filter(None, (status, detail)))}"
        for (status, detail), those in reasons.items()
    ]


def to_paste(advice: Advice) -> list[str]:
    """Return the lines that apply the recommendation in a program; empty if they are printed above or unknown."""
    best = advice.recommendation
    return [] if best is None or advice.by_graph else paste(advice.first.paste, best)


def paste(switch: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """Return the lines that apply a setting to a program's `model`; none for the baseline.

    `switch` has the lines that switch the model's library to `sdpa` or `eager`, if there are any.
    """
    of = name_of(name)
    base = of.base
    if base == AS_IS:
        return []
    if base.startswith(COMPILED):
        return [*paste(switch, of.compiled_from or AS_IS), "model.compile(dynamic=False)"]
    if base in switch or base == "sdpa":
        return [*switch.get(base, ())]
    fused = switch.get("sdpa", ())
    if base in BACKENDS:
        return [
            "from torch.nn.attention import SDPBackend, sdpa_kernel",
            *fused,
            f"with sdpa_kernel(SDPBackend.{BACKENDS[base]}):",
            "    y = model(x)",
        ]
    module, _, attribute = base.partition(":")
    if not attribute:
        module, attribute = f"attention_bench.impls.{of.entry.adapter}".partition(":")[0], "attend"
    return [
        *fused,
        "import torch.nn.functional as F",
        "from attention_bench.impls.sdpa_calls import bridge",
        f"from {module} import {attribute}",
        f"F.scaled_dot_product_attention = bridge({attribute})",
    ]
