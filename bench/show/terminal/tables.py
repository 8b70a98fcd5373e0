"""What stands in the terminal, name by name."""

from bench.show.terminal.failures import failures
from bench.show.terminal.listing import listing
from bench.show.terminal.matrix import matrix
from bench.show.terminal.progress_line import point_line
from bench.show.terminal.references import references
from bench.show.terminal.results import results

__all__ = ["failures", "listing", "matrix", "point_line", "references", "results"]
