"""The colours and marks of implementations, stages and categories of operators, the same in all pictures.

Colours of implementations come from Okabe and Ito (2008), which colour-blind readers can tell apart, and darker ones
from Paul Tol. Dashes and markers differ too, so nothing depends on colour alone.
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
}
"""The other colours of pictures; a page has variables with these names, light and dark."""

DARK = "#171b21"
"""The surface of a dark page."""

TINT = 0.45

READABLE = 4.6
"""The contrast of text with its background; WCAG requires 4.5 for small text."""

LUMINANCE = (0.2126, 0.7152, 0.0722)
"""The weights of red, green and blue in luminance, for sRGB."""

OTHER_COLOURS = ("#cc6677", "#117733", "#4477aa", "#661100", "#6699cc", "#999933")
OTHER_DASHES = (SOLID, DASHED, DASH_DOT, LONG)
OTHER_MARKERS = ("*", "H", "8", "X", "d")

PRODUCT, BATCHED, SOFTMAX, SEVERAL, COPY, ARITHMETIC, OTHER = (
    "matrix product",
    "batched product",
    "softmax",
    "several steps in one kernel",
    "copy or new memory",
    "element by element",
    "other",
)

CATEGORY_COLOURS = {
    PRODUCT: "#7089fb",
    BATCHED: "#f26c15",
    SOFTMAX: "#ebbc6c",
    SEVERAL: "#dfaeee",
    COPY: "#83868b",
    ARITHMETIC: "#bdfdb2",
    OTHER: "#b8b5a2",
}
"""In about the order of a call; orange grows with the square of the tokens. Black text is readable on each."""

RESIDUAL_COLOUR = "#e4e4e8"
"""The colour of time outside all stages."""

LONGEST_NAME = 64
"""Longer names are cut to this number of characters."""

NOISE = {
    "void ": "",
    "(anonymous namespace)::": "",
    "at::native::": "",
    "autograd::engine::evaluate_function: ": "autograd: ",
}
"""Frequent uninformative parts of long names, with their replacements."""

CATEGORIES = {
    SEVERAL: ("attention", "flash", "fmha", "cudnn_sdpa", "flex", "fused", "triton_"),
    SOFTMAX: ("softmax",),
    BATCHED: ("bmm", "matmul", "einsum"),
    PRODUCT: ("::mm", "addmm", "kernels.mm", "mmbackward", "linear", "gemm", "conv", "cutlass", "xmma", "proj", "qkv"),
    COPY: ("copy", "clone", "contiguous", "empty", "::cat", "memcpy", "memset", "zero", "fill", "resize"),
    ARITHMETIC: ("add", "mul", "div", "sub", "sum", "elementwise"),
}
"""The parts of names that identify a category; the first match counts."""


def style(implementation: str) -> Style:
    """Return the style of an implementation; for an unknown name it depends only on the name.

    Options change the dash and marker but not the colour.
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


def ink(colour: str) -> str:
    """Return a colour of the same hue, dark enough for small text on white."""
    return _readable(colour, "#000000", COLOURS["surface"])


def on_both(colour: str) -> str:
    """Return a picture's colour as CSS for a light or dark page: a variable of the page, or two colours.

    A colour as dark as ink becomes ink.
    """
    names = {value: name for name, value in COLOURS.items()}
    if colour in names or _luminance(colour) < _luminance(COLOURS["ink"]):
        return f"var(--{names.get(colour, 'ink')})"
    lighter = _readable(colour, "#ffffff", DARK)
    return colour if lighter == colour else f"light-dark({colour},{lighter})"


def mix(colour: str, other: str, share: float) -> str:
    """Return the colour with a share of another mixed into it."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(own + (new - own) * share):02x}" for own, new in pairs)


def stage_colour(name: str) -> str:
    """Return the colour of a stage: a batched product's for a core, else its category's, by its name."""
    return CATEGORY_COLOURS[BATCHED if name.startswith(CORE) else category(name)]


def short_name(name: str) -> str:
    """Return a name of at most LONGEST_NAME characters: template arguments are dropped first, then it is cut."""
    if len(name) <= LONGEST_NAME:
        return name
    plain = name
    for noise, word in NOISE.items():
        plain = plain.replace(noise, word)
    plain = plain or name
    # a bracket at the beginning doesn't start template arguments
    ends = [place for place in (plain.find("<"), plain.find("(")) if place > 0]
    plain = plain[: min(ends)] + "<…>" if ends else plain
    return cut(plain, LONGEST_NAME)


def category(name: str) -> str:
    """Return the category of an operator or kernel by its name without template arguments."""
    lowered = short_name(name).lower()
    return next((group for group, parts in CATEGORIES.items() if any(part in lowered for part in parts)), OTHER)


def _readable(colour: str, towards: str, ground: str) -> str:
    """Return the colour with as much of another mixed into it as it needs to be readable on a background."""
    mixed = (mix(colour, towards, share / 10) for share in range(11))
    return next(each for each in mixed if abs(math.log(_luminance(each) / _luminance(ground))) >= math.log(READABLE))


def _luminance(colour: str) -> float:
    """Return the luminance of a colour, 0.05 for black; the ratio of two is their contrast."""
    shares = [value / 255 for value in _channels(colour)]
    linear = [float(each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4) for each in shares]
    return 0.05 + sum(weight * value for weight, value in zip(LUMINANCE, linear, strict=True))


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
