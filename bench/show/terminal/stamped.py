"""A stamp on every line of what a terminal shows."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style


@dataclass(frozen=True)
class Stamped:
    """A renderable that begins every line with a stamp, also one that the console's edge makes of a longer line."""

    content: RenderableType
    stamp: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        lead = Segment(f"{self.stamp} ", Style.parse(self.style))
        width = max(options.max_width - lead.cell_length, 1)
        for line in console.render_lines(self.content, options.update(width=width), pad=False):
            yield lead
            yield from line
            yield Segment.line()
