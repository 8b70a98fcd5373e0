"""An answer as Markdown."""

from collections.abc import Iterator

from bench.analyse.advice import Advice
from bench.plan.case import AS_IS
from bench.show.advice import words
from bench.store import units


def markdown(advice: Advice) -> str:
    """Return an answer as Markdown: the bound, what was found, the settings, the recommendation."""
    return "\n".join(_lines(advice)) + "\n"


def _lines(advice: Advice) -> Iterator[str]:
    bound = words.bound(advice)
    yield f"**{bound[0].upper()}{bound[1:]}.**"
    yield from ("", words.about(advice), "")
    yield from (f"- {line}" for line in (*words.found(advice), *words.rewriting(advice), *advice.objections))
    if not advice.alternatives:
        return
    yield from (
        "",
        "| setting | measured | predicted | latency | peak memory | output error |",
        "|---|---|---|---:|---:|---:|",
    )
    as_is = advice.as_is
    latency, peak = units.seconds(as_is.get("latency_s")), units.size(as_is.get("peak_bytes"))
    yield f"| `{AS_IS}` | baseline | | {latency} | {peak} | |"
    for each in advice.alternatives:
        if each.status == "ok":
            error = "" if units.is_missing(each.error) else f"{each.error:.1g}"
            gains = f"{words.gain(each.speedup)} | {words.gain(each.predicted)}"
            cells = f"{units.seconds(each.latency_s)} | {units.size(each.peak_bytes)} | {error}"
            yield f"| `{each.name}` | {gains} | {cells} |"
    yield from (
        "",
        *(
            f"- {line}"
            for line in (
                *words.not_measured(advice),
                *words.differences(advice),
                *words.agreements(advice),
                *words.unpredicted(advice),
            )
        ),
    )
    recommendation = words.recommendation(advice)
    yield from ("", f"**{recommendation[0].upper()}{recommendation[1:]}.**")
    if advice.recommendation and (lines := words.paste(advice.library, advice.recommendation)):
        yield from ("", "```python", *lines, "```")
    yield from ("", *words.legend(advice.alternatives))
