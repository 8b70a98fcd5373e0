"""The page of a run's profiles: one file that needs no network, no server and no other file."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from bench.analyse import profile as analyse
from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.show.operators import CATEGORY_COLOURS, short, shortened
from bench.show.palette import OTHER_STAGE_COLOURS, PAGE_COLOURS, QUADRATIC, STAGE_COLOURS, mix, on, stage_colour
from bench.show.point_text import differences, parts, varying
from bench.show.report.case import CaseView, case_view, peak_words
from bench.store import atomic, units
from bench.store.profile import Profile

PAGE = "profile.html"
"""The name of the page in a run's folder."""

PARTS = Path(__file__).parent / "parts"

MOST_SPANS, FEWEST_SPANS, SPANS_OF_A_PAGE = 400, 60, 4000
"""Most spans of a timeline, fewest if many cases share a page, and most of a page, which stays below 2 MB."""

LIGHTER_IN_THE_DARK = 0.15

ONE_LINE = 32
"""Names of at most this number of characters fit into a line of a table."""

MOST_TICKS = 5
"""Ticks on an axis of time; more would touch on a phone."""


@dataclass(frozen=True)
class Group:
    """The cases of one point; `label` names the values that differ from other points of the page."""

    point: Point
    label: str
    cases: tuple[CaseView, ...]


def write(profiles: Sequence[Profile], run: Path, warning: str = "") -> Path:
    """Write the page of a run's profiles into its folder, and return its file.

    `warning` says that identical code differs too much in the run; empty if it doesn't.
    Raises WrongRequest if there are no profiles, or if the file can't be written.
    """
    if not profiles:
        raise WrongRequest(f"{run} has no profiles; python -m bench profile {run} makes them")
    path = run / PAGE
    text = page(profiles, run.resolve().name, warning)
    try:
        atomic.replace(path, text)
    except OSError as error:
        raise WrongRequest(f"cannot write {path} ({error.strerror})") from None
    return path


def page(profiles: Sequence[Profile], title: str, warning: str = "") -> str:
    """Return the page of some profiles, under a title; it begins with `warning`, if that isn't empty."""
    script = (PARTS / "page.js").read_text(encoding="utf-8")
    groups = _groups(profiles)
    operators = [operator for group in groups for case in group.cases for operator, _ in case.operators]
    names = [name for operator in operators for name in (operator.name, *operator.kernels)]
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            warning=warning,
            facts=_facts(profiles),
            groups=groups,
            colours=_colours(groups),
            long_names={name: f"name-{number}" for number, name in enumerate(shortened(names))},
            script=Markup(script),  # noqa: S704 # our own file
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PARTS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "seconds": lambda value: _aligned(units.seconds(value)),
        "size": lambda value: _aligned(units.size(value)),
        "flops": lambda value: _aligned(units.rate(value, "FLOP")),
        "rate": lambda value: _aligned(units.rate(value, "FLOP/s")),
        "time": units.seconds,
        "tick": lambda value_s: units.seconds(value_s, trim=True) if value_s else "0",
        "ticks": _ticks,
        "bytes": units.size,
        "count": units.count,
        "percent": units.percent,
        "signed": lambda share: f"{100 * share:+.1f}%",
        "place": lambda share: f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%",
        "short": short,
        "breakable": _breakable,
        "parts": parts,
        "peak_words": peak_words,
        "overhead": analyse.overhead,
        "residual_s": analyse.residual_s,
        "stage_sum_s": analyse.stage_sum_s,
        "unnamed_s": analyse.unnamed_s,
        "time_s": analyse.time_s,
        "flops_per_s": analyse.rate,
        "stage_colour": stage_colour,
        "colour_class": colour_class,
    }
    environment.globals |= {"heavy": analyse.HEAVY, "quadratic": QUADRATIC, "page_colours": PAGE_COLOURS}
    return environment


def _aligned(text: str) -> Markup:
    """Return a number with its unit in a column of its own, so that numbers align."""
    number, _, unit = text.partition(" ")
    return Markup("{} <u>{}</u>").format(number, unit) if unit else Markup("")


def _breakable(name: str) -> Markup:
    """Return a name with possible breaks between its words if it is too long for a column."""
    return Markup("<wbr>").join(re.split(r"(?<=_)(?=[a-z])|(?<=::)", name) if len(name) > ONE_LINE else [name])


def _ticks(whole_s: float) -> list[float]:
    """Return round times from the beginning of a call to its end."""
    places = MaxNLocator(nbins=MOST_TICKS, steps=[1, 2, 5, 10]).tick_values(0, whole_s)
    return [float(place) for place in places if 0 <= place <= whole_s]


def colour_class(colour: str) -> str:
    """Return the CSS class of a colour, in the light and in the dark scheme."""
    return f"c{colour.removeprefix('#')}"


def _groups(profiles: Sequence[Profile]) -> list[Group]:
    by_point: dict[Point, list[Profile]] = {}
    for profile in profiles:
        by_point.setdefault(profile.case.point, []).append(profile)
    columns = varying(by_point)
    most = min(MOST_SPANS, max(FEWEST_SPANS, SPANS_OF_A_PAGE // len(profiles)))
    groups: list[Group] = []
    for number, (point, members) in enumerate(by_point.items()):
        members.sort(key=lambda profile: profile.timed_s)
        cases = (case_view(f"case-{number}-{place}", profile, most) for place, profile in enumerate(members))
        groups.append(Group(point, differences(point, columns) or " · ".join(parts(point)), tuple(cases)))
    return groups


def _facts(profiles: Sequence[Profile]) -> dict[str, list[str]]:
    """Return the origins of the profiles, each value once."""
    origins = [profile.origin for profile in profiles]
    facts = {
        "device": [origin.device_name for origin in origins],
        "torch": [origin.torch_version for origin in origins],
        "commit": [origin.commit for origin in origins],
        "environment": [origin.env_id for origin in origins],
        "profiled": [origin.started_at.partition("T")[0] for origin in origins],
    }
    return {name: [value for value in dict.fromkeys(values) if value] for name, values in facts.items()}


def _colours(groups: Sequence[Group]) -> dict[str, tuple[str, str, str]]:
    """Return each colour of the page with the colour of text on it, and both in the dark scheme."""
    cases = [case for group in groups for case in group.cases]
    used = [
        *STAGE_COLOURS.values(),
        *OTHER_STAGE_COLOURS,
        *CATEGORY_COLOURS.values(),
        *(case.colour for case in cases),
    ]
    lighter = {each: mix(each, "#ffffff", LIGHTER_IN_THE_DARK) for each in used}
    return {each: (on(each), dark, on(dark)) for each, dark in lighter.items()}
