"""Files that are replaced at once or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path


def replace(path: Path, content: str | bytes) -> None:
    """Replace a file by the content, at once: a reader sees the old file or the new one, also after a power cut.

    Raises OSError if it can't be written; the old file then stays, and nothing is left beside it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove the temporary files of these names that a killed process left."""
    for name in names:
        for left in folder.glob(f".{name}.*"):
            left.unlink(missing_ok=True)
