"""The style of implementations, and the colours of stages and of categories of operators, the same in all pictures.

Colours of implementations are those of Okabe and Ito (2008), which the colour-blind tell apart, and darker ones of Paul
Tol. Dash and marker differ too, so nothing depends on colour alone.

Stages whose work grows with the square of the tokens are warm, so that the quadratic part is seen at a glance.
Products with weights are blue, element by element is green, and what only moves data is grey.
Within a group of stages the lightness differs, so that they are told apart without red or green cones.
A category of operators has the colour of the stage that does the same work.
"""

import hashlib
import math
from dataclasses import replace

from bench.show.text import cut
from bench.store.profile import CORE
from impls.catalogue import DASH_DOT, DASHED, LONG, SOLID, Style, name_of

COLOURS = {
    "surface": "#ffffff",
    "ink": "#1b1f24",
    "quiet": "#56606b",
    "rule": "#d8dce2",
    "warning": "#9a3412",
    "good": "#2c6e49",
    "open": "#ececef",
}
"""The colours of pictures besides those of implementations, by their names."""

TINT = 0.45

READABLE = 5.0
"""The contrast with white that a label has at least; WCAG asks 4.5 of small text."""

GAMMA, LUMINANCE = 2.2, (0.2126, 0.7152, 0.0722)
"""Approximately those of sRGB."""

OTHER_COLOURS = ("#cc6677", "#117733", "#4477aa", "#661100", "#6699cc", "#999933")
OTHER_DASHES = (SOLID, DASHED, DASH_DOT, LONG)
OTHER_MARKERS = ("*", "H", "8", "X", "d")

STAGE_COLOURS = {
    "windows": "#4f0db1",
    "patch embedding": "#3f5687",
    "qkv projection": "#4a84df",
    "q projection": "#1c226d",
    "kv projection": "#1930ec",
    "split heads": "#585a5c",
    "qk norm": "#affb9e",
    "rotary": "#0a3334",
    "repeat heads": "#778eb8",
    "scale": "#4b925a",
    "scores": "#d55f00",
    "bias": "#fe9623",
    "mask": "#331105",
    "softmax": "#feb969",
    "weighted values": "#983213",
    "merge heads": "#999da8",
    "output projection": "#91c8fb",
    "undo windows": "#350340",
    "skip": "#8edca9",
}
"""Every stage that `stepwise` names, in the order of a call."""

QUADRATIC = ("scores", "bias", "mask", "softmax", "weighted values")
"""The stages that read or write a number for every pair of tokens."""

RESIDUAL_COLOUR = "#e4e4e8"
"""The colour of time that no stage accounts for."""

OTHER_STAGE_COLOURS = ("#aa3377", "#ccbb44", "#66ccee", "#664488", "#bb99cc")

LONGEST_NAME = 64
"""Longer names are cut to this number of characters."""

NOISE = {
    "void ": "",
    "(anonymous namespace)::": "",
    "at::native::": "",
    "autograd::engine::evaluate_function: ": "autograd: ",
}
"""Frequent parts of long names that tell nothing, and what replaces them."""

PRODUCT, BATCHED, SOFTMAX, SEVERAL, COPY, ARITHMETIC, OTHER = (
    "matrix product",
    "batched product",
    "softmax",
    "several steps in one kernel",
    "copy or new memory",
    "element by element",
    "other",
)

CATEGORIES = {
    SEVERAL: ("attention", "flash", "fmha", "cudnn_sdpa", "flex", "fused", "triton_"),
    SOFTMAX: ("softmax",),
    BATCHED: ("bmm", "matmul", "einsum"),
    PRODUCT: ("::mm", "addmm", "kernels.mm", "mmbackward", "linear", "gemm", "conv", "cutlass", "xmma"),
    COPY: ("copy", "clone", "contiguous", "empty", "::cat", "memcpy", "memset", "zero", "fill", "resize"),
    ARITHMETIC: ("add", "mul", "div", "sub", "sum", "elementwise"),
}
"""The parts of names by which a category is recognised; the first that fits is taken."""

CATEGORY_COLOURS = {
    PRODUCT: STAGE_COLOURS["qkv projection"],
    BATCHED: STAGE_COLOURS["scores"],
    SOFTMAX: STAGE_COLOURS["softmax"],
    SEVERAL: "#7b4fa3",
    COPY: STAGE_COLOURS["merge heads"],
    ARITHMETIC: STAGE_COLOURS["skip"],
    OTHER: "#cbc5ba",
}
"""In about the order of a call: operators of a category have the same position in every bar."""


def style(implementation: str) -> Style:
    """Return the style of an implementation; for an unknown name it depends on the name alone.

    With options it has the same colour as without, and its own dash and marker.
    A compiled one that isn't in the catalogue has a lighter tint of its source's colour.
    """
    of = name_of(implementation)
    if of.base != implementation:
        own = _of_unknown(implementation)
        return replace(style(of.base), dash=own.dash, marker=own.marker)
    if not of.is_own:
        return of.entry.style
    if of.compiled_from:
        source = style(of.compiled_from)
        return replace(source, colour=mix(source.colour, "#ffffff", TINT), dash=DASHED, hollow=True)
    return _of_unknown(implementation)


def light(colour: str) -> str:
    """Return the colour that a name of COLOURS has; another colour is itself."""
    return COLOURS.get(colour, colour)


def ink(colour: str) -> str:
    """Return the colour in the same hue, dark enough for small text on white."""
    return next(
        dark for dark in (mix(colour, "#000000", share / 10) for share in range(11)) if _contrast(dark) >= READABLE
    )


def on(colour: str) -> str:
    """Return white or black, whichever is easier to read as small text on this colour."""
    return max(("#ffffff", "#000000"), key=lambda words: abs(math.log(_contrast(words) / _contrast(colour))))


def mix(colour: str, other: str, share: float) -> str:
    """Return the colour with a share of another mixed into it."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(own + (new - own) * share):02x}" for own, new in pairs)


def stage_colour(name: str) -> str:
    """Return the colour of a stage; for an unknown name it depends on the name alone."""
    if name.startswith(CORE):
        return STAGE_COLOURS["scores"]
    if name in STAGE_COLOURS:
        return STAGE_COLOURS[name]
    # hash() changes with every process
    return OTHER_STAGE_COLOURS[hashlib.sha256(name.encode()).digest()[0] % len(OTHER_STAGE_COLOURS)]


def _contrast(colour: str) -> float:
    linear = [float((value / 255) ** GAMMA) for value in _channels(colour)]
    luminance = sum(weight * value for weight, value in zip(LUMINANCE, linear, strict=True))
    return 1.05 / (luminance + 0.05)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))


def _of_unknown(name: str) -> Style:
    # hash() changes with every process
    colour, dash, marker = hashlib.sha256(name.encode()).digest()[:3]
    return Style(
        OTHER_COLOURS[colour % len(OTHER_COLOURS)],
        OTHER_DASHES[dash % len(OTHER_DASHES)],
        OTHER_MARKERS[marker % len(OTHER_MARKERS)],
    )


def short_name(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters: first without its template's arguments, then cut."""
    if len(name) <= LONGEST_NAME:
        return name
    plain = name
    for noise, word in NOISE.items():
        plain = plain.replace(noise, word)
    plain = plain or name
    # a name that begins with a bracket isn't a template's
    ends = [place for place in (plain.find("<"), plain.find("(")) if place > 0]
    plain = plain[: min(ends)] + "<…>" if ends else plain
    return cut(plain, LONGEST_NAME)


def category(name: str) -> str:
    """Return the category of an operator or kernel by its name, without its template's arguments."""
    lowered = short_name(name).lower()
    return next((group for group, parts in CATEGORIES.items() if any(part in lowered for part in parts)), OTHER)
