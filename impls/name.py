"""The grammar of names: `sdpa`, `module:attribute`, `online[block_tokens=64]`, and those of models.

This module imports no torch, so planning and reading results may import it.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"(?P<base>[^\[\]]+)(?:\[(?P<options>[^\[\]]*)\])?")
OPTION = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>[^=,]+?)\s*")
COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")

SOURCES = ("timm", "torchvision", "transformers")
"""The libraries whose models have a name: `timm:vit_small_patch16_224`."""

RULE = "a name with options must read name[option=value,option=value]"


@dataclass(frozen=True)
class Name:
    """The name of an implementation without its options, and the options."""

    base: str
    options: Mapping[str, Any]


def parse(name: str) -> Name:
    """Return the base and the options of an implementation's name; raises ValueError if it breaks the grammar.

    The value of an option is a Python number or string literal, `true` or `false`; any other text is itself the value.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{RULE}, got {name!r}")
    if match["options"] is None:
        return Name(match["base"], {})
    options: dict[str, Any] = {}
    for part in match["options"].split(","):
        option = OPTION.fullmatch(part)
        if option is None:
            raise ValueError(f"{RULE}, got {name!r}")
        if option["key"] in options:
            raise ValueError(f"{name!r} gives the option {option['key']} twice")
        options[option["key"]] = _value(option["value"])
    return Name(match["base"], options)


def is_model(layer: str) -> bool:
    """Return whether a layer's name is that of a whole model, or of a layer in one.

    A model of a user's own, `module:function`, has its input in brackets.
    """
    return layer.partition(":")[0] in SOURCES or (":" in layer and "[" in layer)


def split(names: str) -> list[str]:
    """Return the names of a comma-separated list; commas inside brackets separate options."""
    return [name.strip() for name in COMMA_OUTSIDE_BRACKETS.split(names)]


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | str) else text
