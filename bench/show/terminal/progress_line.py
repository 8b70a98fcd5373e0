"""The line that is printed when a point ends."""

from collections.abc import Collection

import pandas as pd
from rich.text import Text

from bench.analyse.standing import by_rank
from bench.show.choice_text import choice_of, words
from bench.show.point_text import differences, parts
from bench.show.rows import Row, by_point, measured, unmeasured
from bench.show.terminal.console import on_one_line
from bench.show.terminal.styles import QUIET, style_of_choice, style_of_status
from bench.store import units


def point_line(
    position: int,
    total: int,
    remaining_s: float | None,
    rows: pd.DataFrame,
    baseline: str,
    *,
    varying: Collection[str] | None = None,
    colour: bool = False,
) -> str:
    """Return one line on a point: position, time left, what to use, and each implementation's time and ratio.

    `rows` is the table of this point alone. `varying` names the columns in which the sweep's points differ; if it is
    given, the line shows no others. It holds ANSI codes only if `colour` is set.
    """
    ((point, members),) = by_point(rows).items()
    text = " ".join(parts(point)) if varying is None else differences(point, varying)
    left = f" {f'~{units.duration(remaining_s)} left':>12}" if remaining_s is not None else ""
    line = Text(f"[{position:>{len(str(total))}}/{total}]{left} ", QUIET)
    line.append(f"{text or point.layer}", "not dim")
    ordered = (*by_rank(measured(members)), *unmeasured(members))
    chosen = choice_of(members)
    cells = [Text(words(chosen), style_of_choice(chosen)), *(_outcome(row, baseline) for row in ordered)]
    return on_one_line(Text(" | ").join([line, *cells]), colour=colour)


def _outcome(row: Row, baseline: str) -> Text:
    name = str(row["implementation"])
    if row["status"] != "ok":
        return Text(f"{name} {row['status']}", style_of_status(row["status"]))
    ratio = "baseline" if name == baseline else units.ratio(row["speedup"])
    return Text(" ".join(word for word in (name, units.seconds(row["latency_s"]), ratio) if word))
