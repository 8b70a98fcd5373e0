"""User code: its files, a digest of its sources, and the errors that it raises."""

import hashlib
import re
import sys
from collections.abc import Collection
from pathlib import Path
from textwrap import shorten
from traceback import extract_tb

import torch

import impls
from impls.contract import Unresolved, Unsupported

LONGEST = 400
"""The most characters of an error's message."""

DIGEST_LENGTH = 12
"""The characters of a digest."""

NOT_OF_USERS = "<", *(f"{folder}/" for folder in (*torch.__path__, *impls.__path__, Path(__file__).parents[1]))
"""The beginnings of files that aren't a user's: torch's, the suite's and generated ones. The caller's line is shown."""


def imported_since(before: Collection[str], named: Collection[str] = ()) -> dict[str, tuple[str, str]]:
    """Return the packages and modules that are new in this process, each with its file and a digest of all its files.

    `before` has the names of the modules that were already imported. The standard library and the suite are left out,
    and so are packages in `before`, unless they are `named`.
    """
    known = {name.partition(".")[0] for name in before} - {*named} | sys.stdlib_module_names | {"attention_bench"}
    packages: dict[str, dict[str, str]] = {}
    for name, module in sorted(sys.modules.items()):
        # `getattr` on a lazy module may import another one
        top, file = name.partition(".")[0], getattr(module, "__dict__", {}).get("__file__")
        if file and top not in known:
            packages.setdefault(top, {})[name] = str(file)
    return {top: (next(iter(files.values())), _digest(files)) for top, files in packages.items()}


def _digest(files: dict[str, str]) -> str:
    """Return a digest of the modules' names and their files' contents."""
    digest = hashlib.sha256()
    for name, file in files.items():
        digest.update(name.encode())
        if Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:DIGEST_LENGTH]


def said(error: BaseException) -> str:
    """Return an error's first paragraph, with its line in user code: `RuntimeError: no (attn.py, line 15)`."""
    paragraph = re.split(r"\n\s*\n", str(error).strip(), maxsplit=1)[0]
    words = ": ".join(filter(None, (type(error).__name__, shorten(paragraph, LONGEST, placeholder=" …"))))
    frames = [each for each in extract_tb(error.__traceback__) if not each.filename.startswith(NOT_OF_USERS)]
    is_placed = frames and not isinstance(error, SyntaxError)  # its message has the place
    return f"{words} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if is_placed else words


def raised(error: BaseException) -> str:
    """Return the user code's error that caused an error: `raises: RuntimeError: no (attn.py, line 15)`.

    If the suite itself found the mistake, return the suite's message.
    """
    while isinstance(error, Unsupported | Unresolved):
        if error.__cause__ is None:
            return str(error)
        error = error.__cause__
    return f"raises: {said(error)}"
