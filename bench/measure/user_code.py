"""The code that the names of a user bring in: where it lies, and a digest of its sources."""

import hashlib
import sys
from collections.abc import Collection
from pathlib import Path

DIGEST_LENGTH = 12
"""The characters of a digest."""


def imported_since(before: Collection[str], named: Collection[str] = ()) -> dict[str, tuple[str, str]]:
    """Return each package or module that is new in this process: its file, and a digest of all its files.

    `before` has the names of the modules that were imported already. The standard library is left out, and so are
    the suite and what belongs to a package that was there before, unless it is `named`.
    """
    known = {name.partition(".")[0] for name in before} - {*named} | sys.stdlib_module_names | {"attention_bench"}
    packages: dict[str, dict[str, str]] = {}
    for name, module in sorted(sys.modules.items()):
        top, file = name.partition(".")[0], getattr(module, "__file__", None)
        if file and top not in known:
            packages.setdefault(top, {})[name] = str(file)
    return {top: (next(iter(files.values())), _digest(files)) for top, files in packages.items()}


def _digest(files: dict[str, str]) -> str:
    """Return a digest of the names of modules and of the bytes of their files."""
    digest = hashlib.sha256()
    for name, file in files.items():
        digest.update(name.encode())
        if Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:DIGEST_LENGTH]
