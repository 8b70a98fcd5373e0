"""Whose work an operator does, so that it can have the colour of that stage in pictures."""

from bench.show.stage_palette import stage_colour

SEVERAL = "several steps in one kernel"
OTHER = "other"

SEVERAL_COLOUR, OTHER_COLOUR = "#7b4fa3", "#cbc5ba"

WORK = {
    "triton_": SEVERAL,
    "cpp_": SEVERAL,
    "attention": SEVERAL,
    "flex": SEVERAL,
    "softmax": "softmax",
    "bmm": "scores",
    "matmul": "scores",
    "mm": "qkv projection",
    "linear": "qkv projection",
    "gemm": "qkv projection",
    "conv": "qkv projection",
    "copy": "merge heads",
    "clone": "merge heads",
    "cat": "merge heads",
    "mul": "scale",
    "div": "scale",
    "add": "skip",
    "sum": "skip",
}
"""What is part of an operator's name, and the stage that does such work; the first that is found holds."""

SHOWN_IN_ORDER = (
    "qkv projection",
    "scale",
    "scores",
    "softmax",
    SEVERAL,
    "merge heads",
    "skip",
    OTHER,
)
"""The order of a call, near enough: operators that do the same work stand in the same place in every bar."""


def work(name: str) -> str:
    """Return the stage that does what this operator does, SEVERAL for a kernel that does the work of several."""
    return next((stage for part, stage in WORK.items() if part in name), OTHER)


def work_colour(name: str) -> str:
    """Return the colour of what an operator does."""
    return {SEVERAL: SEVERAL_COLOUR, OTHER: OTHER_COLOUR}.get(work(name)) or stage_colour(work(name))
