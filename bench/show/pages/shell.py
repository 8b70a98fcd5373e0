"""What all pages share: the template around them, pictures in them, and the file."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.plan.errors import WrongRequest
from bench.show.blocks import Block
from bench.show.charts.sheet import Picture
from bench.store import files

PAGE_PARTS = Path(__file__).parent / "parts"


def render(
    template: str,
    title: str,
    *,
    head: Iterable[Block],
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Return a page of a template.

    `head` comes first; `filters` and `values` are what the template uses.
    """
    environment = Environment(
        loader=FileSystemLoader(PAGE_PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"source": source, **(filters or {})}
    script = (PAGE_PARTS / "page.js").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        title=title,
        head=head,
        script=Markup(script),  # noqa: S704 # our own
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **values,
    )


def source(of: Picture) -> str:
    """Return a picture as the address of an image in a page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(of.svg()).decode()}"


def write(path: Path, text: str) -> Path:
    """Write a page, at once or not at all, and return its file; raises WrongRequest if it can't be written."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise WrongRequest(f"cannot write {path} ({error.strerror})") from None
    return path
