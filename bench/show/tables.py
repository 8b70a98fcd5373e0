"""What stands in the terminal, name by name."""

from bench.show.failures import failures
from bench.show.line import point_line
from bench.show.listing import listing
from bench.show.matrix import matrix
from bench.show.references import references
from bench.show.results import results

__all__ = ["failures", "listing", "matrix", "point_line", "references", "results"]
