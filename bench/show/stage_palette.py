"""One colour per stage of a layer, the same in all pictures.

The stages whose work grows with the square of the tokens are warm, so that the quadratic part is seen at a glance;
products with weights are blue, element by element is green, and what only moves data is grey.
Within a family the lightness tells one from another, with or without red and green cones.
"""

import hashlib

STAGE_COLOURS = {
    "patch embedding": "#3f5687",
    "qkv projection": "#4a84df",
    "split heads": "#585a5c",
    "scale": "#4b925a",
    "scores": "#d55f00",
    "mask": "#331105",
    "softmax": "#feb969",
    "weighted values": "#983213",
    "merge heads": "#999da8",
    "output projection": "#91c8fb",
    "skip": "#8edca9",
}
"""Every stage that `stepwise` names, in the order of a call."""

QUADRATIC = ("scores", "mask", "softmax", "weighted values")
"""The stages that read or write a number for every pair of tokens."""

RESIDUAL_COLOUR = "#e4e4e8"
"""Of what is in the whole and in no stage."""

OTHER_COLOURS = ("#aa3377", "#ccbb44", "#66ccee", "#664488", "#bb99cc")


def stage_colour(name: str) -> str:
    """Return the colour of a stage; that of an unknown name follows from the name alone."""
    if name in STAGE_COLOURS:
        return STAGE_COLOURS[name]
    # hash() changes with every process
    return OTHER_COLOURS[hashlib.sha256(name.encode()).digest()[0] % len(OTHER_COLOURS)]
