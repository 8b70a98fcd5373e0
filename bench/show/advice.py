"""The answer of `advise`: its sentences, as blocks before and after settings are compared, and as JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.analyse.advice import LITTLE, Advice, Alternative, LayerKind, OtherSoftmax, PerItem
from bench.analyse.flags import launch_bound
from bench.plan.case import AS_IS
from bench.plan.invocation import short
from bench.plan.verdicts import SLOWER
from bench.show import intervals
from bench.show.answer import bound_by_host
from bench.show.blocks import GAP, GOOD, HEAD, PLAIN, QUIET, WARNING, Block, Code, Column, Lines, Table, of_texts
from bench.show.model_sweep import can_be_packed, lengths_of
from bench.show.padding import sentence
from bench.show.text import capital, counted, memory_setting, more, names, parts
from bench.stats.estimates import CONFIDENCE, Interval
from bench.store import units
from impls.catalogue import COMPILED, GRAPH, name_of

BACKENDS = {
    "sdpa_math": "MATH",
    "sdpa_flash": "FLASH_ATTENTION",
    "sdpa_efficient": "EFFICIENT_ATTENTION",
    "sdpa_cudnn": "CUDNN_ATTENTION",
}
"""The backend of each setting that allows one alone."""

UNFUSED = "unfused"
"""The operator of a core that several compute."""

STATUS_OF_SAME = "same"
"""The status of a setting that runs what the model runs anyway, and so is not measured."""

VAGUE = 10.0
"""The ratio of an interval's ends from which on it says nothing."""

NOT_KNOWN = "not known yet"
"""What stands in place of a number whose interval says nothing."""


def before(advice: Advice) -> list[Block]:
    """Return what was seen before anything is compared; its first line is the bound."""
    return [
        Lines([bound(advice)], HEAD),
        Lines([about(advice), *map(capital, memory_setting([advice.point]))]),
        Lines(layers(advice), QUIET, is_list=True, indent=2),
        Lines([*map(other, advice.others), *packing(advice)], is_list=True, indent=2),
        Lines(advice.objections, WARNING, is_list=True, indent=2),
        Lines(rewriting(advice), is_list=True, indent=2),
        Code(proposals(advice)),
    ]


def stopped(advice: Advice) -> list[Block]:
    """Return why nothing is compared."""
    why = f"That is below {units.ratio(LITTLE)}, so nothing was compared"
    if not advice.kinds:
        why = "Without a core that can be replaced nothing was compared"
    how = f"--anyway compares the settings all the same. A call takes {units.seconds(advice.call_s)}."
    return [Lines([f"{why}; {how}"])]


def after(advice: Advice) -> list[Block]:
    """Return the table of settings, the recommendation and its lines to paste; nothing if nothing was compared."""
    if not advice.as_is:
        return [Lines(["Not measured in this time; the same command with a longer --within measures it."], WARNING)]
    if not advice.alternatives:
        return []
    others = [{**vars(each), "measured": gain(each.speedup)} for each in advice.alternatives if each.status == "ok"]
    bound = [advice.chosen] if advice.chosen.get("host_s") and launch_bound(advice.chosen) else []
    return [
        Table(_columns(advice), [{**_baseline(advice), "measured": "baseline"}, *others]),
        Lines(not_measured(advice), WARNING, is_list=True),
        GAP,
        Lines([recommendation(advice)], HEAD),
        Lines([*bound_by_host(bound, "Here", [advice.point.timing])]),
        Code(to_paste(advice)),
        Lines([*packed(advice)], is_list=True),
    ]


def _baseline(advice: Advice) -> dict[str, Any]:
    return {"name": AS_IS, **{name: advice.as_is.get(name) for name in ("latency_s", "peak_bytes")}}


def together(answers: Iterable[Advice], order: Sequence[PerItem]) -> list[Block]:
    """Return what the columns of answers mean, and which of several points is fastest for each item, by how much."""
    meanings = Lines(legend(answers), QUIET, is_list=True)
    if len(order) < 2:
        return [meanings]
    labels = names([each.point for each in order])
    first, second = order[:2]
    shown = "" if second.behind.low > 1 else "; it is not shown to be faster"
    headline = (
        f"fastest for each item: {labels[first.point]}, with {first.setting}: {intervals.ratio(second.behind)} as "
        f"fast as {labels[second.point]}{shown}"
    )
    rows = [
        [labels[each.point], each.setting, units.seconds(each.item_s), gain(each.behind) if each is not first else ""]
        for each in order
    ]
    headings = ("point", "setting", "for each item", "the fastest is")
    return [meanings, GAP, Lines([headline], HEAD), of_texts(headings, rows, numbers=headings[2:])]


def _columns(advice: Advice) -> list[Column]:
    def tone(row: dict[str, Any]) -> str:
        return GOOD if row["name"] == advice.recommendation else PLAIN

    def number(heading: str, name: str, text: Callable[[Any], str]) -> Column:
        return Column(heading, lambda row: text(row.get(name)), lambda row: row.get(name))

    return [
        Column("setting", lambda row: row["name"], tone=tone, is_code=True),
        Column("measured", lambda row: row["measured"]),
        number("latency", "latency_s", units.seconds),
        number("peak memory", "peak_bytes", units.size),
        number("first compile", "compile_cold_s", units.duration),
        number("output error", "error", lambda error: "" if units.is_missing(error) else f"{error:.1g}"),
    ]


def as_json(answers: Sequence[Advice]) -> str:
    """Return the answer as JSON; with several points it is the first one's, with all of them as `points`."""
    objects = [as_object(advice) for advice in answers]
    whole = {**objects[0], "points": objects} if len(objects) > 1 else objects[0]
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def as_object(advice: Advice) -> dict[str, Any]:
    """Return an answer as a JSON object; a number that is not known is null."""
    shares = ("share", "layer_share", "bound", "call_s")
    return {
        "model": advice.point.layer,
        "point": {name: value for name, value in vars(advice.point).items() if value is not None},
        **_plain({name: getattr(advice, name) for name in shares}),
        "layers": [
            {**{name: getattr(kind, name) for name in ("path", "count", "cores", "share")}, **kind.core}
            for kind in advice.kinds
        ],
        "softmaxes": [_plain(vars(each)) for each in advice.others],
        "untraced": advice.untraced,
        "objections": advice.objections,
        "baseline": _plain(_baseline(advice)),
        "alternatives": [_plain(vars(each)) for each in advice.alternatives],
        "recommendation": advice.recommendation,
        "paste": to_paste(advice),
        "packing": _packing(advice),
        "processes": advice.as_is.get("processes", 0),
        "slowdown_high": intervals.finite(advice.as_is.get("slowdown_high")),
    }


def _packing(advice: Advice) -> dict[str, Any] | None:
    """Return what packed items bring for JSON, with the lengths in place of the point; None if it was not measured."""
    if advice.packing is None:
        return None
    known = {name: value for name, value in vars(advice.packing).items() if name != "point"}
    return _plain({"lengths": advice.packing.point.lengths, **known})


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for JSON, an interval as three numbers."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Interval):
            plain |= intervals.as_numbers(name, value)
        else:
            plain[name] = value if isinstance(value, str | tuple) else intervals.finite(value)
    return plain


def about(advice: Advice) -> str:
    """Return what was looked at: `timm:vit_small_patch16_224 · cpu · float32 · inference · B=8 · 1 thread`."""
    point = advice.point
    left_out = {f"N={point.num_tokens}", f"C={point.channels}", f"H={point.num_heads}"}
    return " · ".join(word for word in parts(point) if word not in left_out)


def bound(advice: Advice) -> str:
    """Return the first line: the share of the time in attention, and the most that this leaves to gain."""
    if advice.untraced:
        return f"what attention takes is {NOT_KNOWN}: {advice.untraced}"
    if not advice.kinds:
        number = len({path for each in advice.others for path in each.layers})
        return f"no attention that could be replaced was found, and softmaxes in {counted(number, 'layer')}"
    which = "attention that can be replaced" if advice.others else "attention"
    what = f"{which} takes {share(advice.share)} of the time"
    if advice.has_whole:
        whole = "the model as it is computes whole layers by one operator, so settings change more than attention"
        return f"{what}, as the graph computes it: {whole}"
    if not _says_something(advice.bound):
        return f"{what}; what a setting can gain at most is {NOT_KNOWN}"
    return f"{what}: no setting of attention alone can gain more than {intervals.ratio(advice.bound)}"


def share(of: Interval) -> str:
    """Return a share with its interval: `12.3 % [11.9, 12.7]`."""
    if not of.is_known:
        return f"{100 * of.value:.1f} %"
    return f"{100 * of.value:.1f} % [{100 * of.low:.1f}, {100 * of.high:.1f}]"


def layers(advice: Advice) -> list[str]:
    """Return a line for each kind of layer, and one for the share of all of them."""
    if not advice.kinds:
        return []
    whole = f"the layers of these cores, with their projections, take {share(advice.layer_share)} of the time"
    return [*map(kind, advice.kinds), whole]


def other(of: OtherSoftmax) -> str:
    """Return the line of softmaxes that belong to no core: where they are, their share of the time, and why."""
    first = of.layers[0] or "the model itself"
    more_of = f" and {len(of.layers) - 1} more" if len(of.layers) > 1 else ""
    return f"a softmax at {of.lines} ({first}{more_of}) takes {share(of.share)} of the time: {of.reason}"


def packing(advice: Advice) -> Iterator[str]:
    """Yield what share of the tokens in cores is padding, and how to measure what packing them would bring there."""
    padded = [(sum(lengths_of(core)), core["shapes"][0]) for core in advice.first["cores"] if can_be_packed(core)]
    if padded:
        of_all = sum(shape[0] * shape[-2] for _, shape in padded)
        yield (
            f"{units.percent(1 - sum(real for real, _ in padded) / of_all)} of the tokens in padded cores are padding; "
            "to pack the others is a change of the model. What it brings in these cores: --look --sweep-file OUT.toml "
            f"--as core writes them with their lengths, and {short()} run --sweep OUT.toml measures padded and packed"
        )


def packed(advice: Advice) -> Iterator[str]:
    """Yield what packed items bring in a padded core, if that was measured."""
    if advice.packing is not None:
        yield f"{sentence([advice.packing])} That is of the padded core by itself; to pack is a change of the model"


def kind(of: LayerKind) -> str:
    """Return a kind of layer in one line, with its core's shapes, strides and masks."""
    core = of.core
    q, *others = map(list, core["shapes"])
    extra = [
        *([f"k {others[0]}"] if others and others[0] != q else []),
        core["dtype"],
        f"mask {core['mask']}" if core["mask"] else "no mask",
        *(["causal"] if core["causal"] else []),
        *([f"dropout {core['dropout']:g}"] if core["dropout"] else []),
    ]
    how = "by F.scaled_dot_product_attention: " if core["by_sdpa"] else ""
    where = of.path or "the model itself"
    number = f"{of.count} layers" if of.count > 1 else "1 layer"
    number += f", {of.cores} cores of" * (of.cores > of.count)
    lines = f" by {core['lines']}" if core.get("lines") else ""
    operator = f"{core['operator']}{_why_unfused(core)}" if core["by_sdpa"] else core["operator"]
    queries = f"{'q' if others else 'x'} {q} strides {list(core['strides'][0])}"
    return f"{number} {core['class_name']} ({where}): {queries}, {', '.join(extra)}; {how}{operator}{lines}"


def _why_unfused(core: Mapping[str, Any]) -> str:
    """Return why SDPA ran no fused kernel, as far as shapes and strides say it; empty if one ran."""
    if core["operator"] != UNFUSED:
        return ""
    shapes, strides = core["shapes"], core["strides"]
    reasons = {
        f"q has {len(shapes[0])} dimensions, fused kernels take 4, as q.unsqueeze(1)": len(shapes[0]) != len("BHND"),
        "q and v have other widths": shapes[0][-1] != shapes[-1][-1],
        "the last dimension of q, k or v is not innermost in memory": any(each[-1] != 1 for each in strides),
        "it has dropout": bool(core["dropout"]),
    }
    return "".join(f", because {reason}" for reason in [reason for reason, holds in reasons.items() if holds][:1])


def _says_something(of: Interval) -> bool:
    """Return whether an interval of a ratio has ends near enough to say something; a value alone says what it is."""
    return of.value == of.value and not (of.is_known and not 0 < of.high < VAGUE * of.low)


def gain(of: Interval) -> str:
    """Return a gain with its interval, empty if there is none."""
    if of.value != of.value:
        return ""
    return intervals.ratio(of, 3, least=2) if _says_something(of) else NOT_KNOWN


def recommendation(advice: Advice) -> str:
    """Return what to use, or that nothing is shown to be faster."""
    best, graph = advice.named(advice.recommendation), advice.named(GRAPH)
    if best is not None:
        most = f"; no setting is more than {more(best.slowdown_high)} faster" if 1 < best.slowdown_high < VAGUE else ""
        return f"use {best.name}: {gain(best.speedup)} as fast as the model as it is{most}{_how(advice, best)}"
    if not any(each.status == "ok" and each.name != GRAPH for each in advice.alternatives):
        return "keep the model as it is: none of the settings can be made in it"
    ahead = [each for each in advice.alternatives if each.speedup.low > 1 and each.name != GRAPH]
    if ahead:
        likely = max(ahead, key=lambda each: each.speedup.value)
        if graph and advice.as_is.get("standing") == SLOWER:
            return (
                f"keep the model as it is: {likely.name} is {gain(likely.speedup)} as fast in the model's graph, and "
                f"{GRAPH}, the model traced and unchanged, {gain(graph.speedup)}: it is not shown that attention gains "
                "anything"
            )
        return (
            f"keep the model as it is so far: {likely.name} is likely faster, {gain(likely.speedup)}, "
            "but not shown to be; a longer --within decides"
        )
    return f"keep the model as it is: no setting is shown to be faster; {_most(advice)}"


def _how(advice: Advice, best: Alternative) -> str:
    """Return how a setting that goes by the graph gets into the model, and what the graph alone brings."""
    if not best.by.startswith(GRAPH):
        return ""
    graph = advice.named(GRAPH)
    times = gain(graph.speedup) if graph else ""
    alone = f" ({GRAPH}, the model traced and unchanged, is {times} as fast)" if times else ""
    is_known = any(map(_has_line, advice.kinds))
    lines = "write the lines above in place of its own" if is_known else "there is no line to write for it yet"
    return f". It was measured in the model's graph{alone}; in the model, {lines}"


def _most(advice: Advice) -> str:
    """Return how much faster another setting may be: by its bound, and by the share if it changes attention alone."""
    high = advice.as_is.get("slowdown_high")
    measured = float(high or 1)
    if units.is_missing(high) or not measured < VAGUE:
        return f"how much faster one may be is {NOT_KNOWN}; a longer --within tells"
    are_compiled = any(each.name.startswith(COMPILED) for each in advice.alternatives)
    limit = advice.bound.high
    if measured > limit and not are_compiled:
        return f"none is more than {more(limit)} faster by the share of attention, or {more(measured)} by its times"
    return f"none is more than {more(measured)} faster" if measured > 1 else "it is the fastest"


def rewriting(advice: Advice) -> list[str]:
    """Return what can be written in place of cores that the model's source computes, or what prevents it."""
    obstacles = dict.fromkeys(str(each.core["obstacle"]) for each in advice.kinds if each.core.get("obstacle"))
    lines = [f"no core in its place computes what the model's source computes here: {each}" for each in obstacles]
    places = dict.fromkeys(str(each.core["lines"]) for each in advice.kinds if _has_line(each))
    if not places:
        return lines
    return [*lines, f"the model's source computes attention by itself, at {', '.join(places)}; there it can say"]


def _has_line(of: LayerKind) -> bool:
    """Return whether there is a line to write in place of a core, and no comment alone."""
    return bool(of.core.get("proposal")) and not str(of.core["proposal"][0]).startswith("#")


def proposals(advice: Advice) -> list[str]:
    """Return the lines to write in place of cores that no setting reaches, each for the first kind that has it."""
    first: dict[str, list[str]] = {}
    for each in advice.kinds:
        if each.core.get("proposal"):
            line, *notes = each.core["proposal"]
            first.setdefault(line, [f"# {each.path or 'the model itself'}", line, *notes])
    return [line for lines in first.values() for line in lines]


def not_measured(advice: Advice) -> list[str]:
    """Return a line for each setting without a time, with the reason."""
    return [
        f"{each.name}: runs the same kernels as the model as it is, so it was not measured"
        if each.status == STATUS_OF_SAME
        else f"{each.name}: {each.status}{f': {each.detail}' if each.detail else ''}"
        for each in advice.alternatives
        if each.status != "ok"
    ]


def to_paste(advice: Advice) -> list[str]:
    """Return the lines that bring what is recommended into a program, empty if they stand above or are not known."""
    best = advice.named(advice.recommendation)
    return [] if best is None or best.by.startswith(GRAPH) else paste(advice.first["paste"], best.name)


def paste(switch: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """Return the lines that make a setting in a program in which the model is called `model`; none for the baseline.

    `switch` has those that set the switch of the model's library, to `sdpa` or to `eager`, as far as there are any.
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


def legend(answers: Iterable[Advice]) -> list[str]:
    """Return what the columns of the answers mean; nothing if nothing was compared."""
    alternatives = [each for advice in answers for each in advice.alternatives]
    if not alternatives:
        return []
    return [
        "measured: how many times as fast as the model as it is, paired round by round, with its 99 % interval; "
        f"the probability that a setting is wrongly recommended is at most {1 - CONFIDENCE:.0%}",
        "output error: the largest deviation from float64, relative to the largest value",
    ]
