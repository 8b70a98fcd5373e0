"""Files that are replaced at once or not at all."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def replace(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Replace a file by the content at once: a reader sees the old file or the new one, also after a power cut.

    The content may come in parts. Raises OSError if it can't be written; then the old file stays.
    """
    if isinstance(content, str):
        content = content.encode(errors="surrogateescape")  # it may name a folder whose name isn't UTF-8
    parts = [content] if isinstance(content, bytes) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file by a JSON object, in a folder that is made if it is missing; raises OSError as `replace` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(content, indent=2) + "\n")


def read_objects(path: Path) -> dict[str, dict[str, Any]]:
    """Return the JSON objects in a file by their names; none if the file can't be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = content.items() if isinstance(content, dict) else ()
    return {name: value for name, value in known if isinstance(value, dict)}


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove the temporary files of these names that a killed process left."""
    for name in names:
        for left in folder.glob(f".{name}.*"):
            left.unlink(missing_ok=True)
