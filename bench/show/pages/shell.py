"""What all pages share: the template around them, Vega's JavaScript, packed data, and the file that is written."""

import base64
import functools
import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.plan.errors import WrongRequest
from bench.show.palette import mix, on, style
from bench.store import atomic

PARTS = Path(__file__).parent / "parts"
SHARED = Path(__file__).parents[1] / "report" / "parts"
"""The folder with the style that the page of profiles has too."""

CHECKOUT = Path(__file__).parents[3]

LIGHTER_IN_THE_DARK, LEAST_LIGHT = 0.15, 0.45
"""The share of white in a colour on a dark page, and in a colour that is almost black."""

DARK = 3
"""A colour whose brightest channel begins with a smaller hexadecimal digit is almost black."""


def render(template: str, title: str, names: Sequence[str], data: Mapping[str, Any], **values: Any) -> str:
    """Return a page of a template; `names` are the implementations, whose colours are CSS variables by their number.

    `data` is what the page's script reads.
    """
    script = (PARTS / "page.js").read_text(encoding="utf-8")
    vega = vega_script()
    return (
        _environment()
        .get_template(template)
        .render(
            title=title,
            colours=[_colours(name) for name in names],
            names=list(names),
            data=as_data(data),
            vega=Markup(vega),  # noqa: S704 # Vega's own, which vl-convert brings
            script=Markup(script),  # noqa: S704 # our own file
            hashes=[_hash(vega), _hash(script)],
            **values,
        )
    )


@functools.cache
def vega_script() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed; it takes some seconds to put together, once."""
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    # its stub doesn't know that the snippet has a default, which is what we want
    return str(vl_convert.javascript_bundle(vl_version=version))  # type: ignore[call-arg]


def write(path: Path, text: str) -> Path:
    """Write a page, at once or not at all, and return its file; raises WrongRequest if it can't be written."""
    try:
        atomic.replace(path, text)
    except OSError as error:
        raise WrongRequest(f"cannot write {path} ({error.strerror})") from None
    return path


def as_data(values: Any) -> Markup:
    """Return values as JSON that can stand in a page."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 # it holds no element


def packed(text: str) -> str:
    """Return a text compressed, in letters that can stand in a page."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def document(name: str, folder: Path) -> str:
    """Return the link from a page in a folder to a document of the checkout; empty if the folder lies elsewhere."""
    inside = folder.resolve().is_relative_to(CHECKOUT)
    return os.path.relpath(CHECKOUT / "docs" / name, folder.resolve()) if inside else ""


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _colours(name: str) -> tuple[str, str, str, str]:
    """Return the colour of an implementation and that of text on it, then both on a dark page."""
    colour = style(name).colour
    almost_black = max(int(colour[at], 16) for at in (1, 3, 5)) < DARK
    dark = mix(colour, "#ffffff", 1 - LEAST_LIGHT + 0.25 if almost_black else LIGHTER_IN_THE_DARK)
    return colour, on(colour), dark, on(dark)


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader([PARTS, SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
