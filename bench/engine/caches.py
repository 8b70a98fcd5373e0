"""The folders of the compiler's caches: that of servers, and one for each case, which begins as a copy of it."""

import shutil
from collections.abc import Hashable
from pathlib import Path

WARM = "warm"
"""The name of the cache that servers fill when they start."""


class Caches:
    """Caches below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[Hashable, int] = {}

    def path(self, name: Hashable) -> Path:
        """Return the folder of a cache, a new one as a copy of that of servers."""
        is_new = name not in self._numbers
        path = self._folder / f"compiled-{self._numbers.setdefault(name, len(self._numbers))}"
        if is_new and name != WARM and (warm := self.path(WARM)).is_dir():
            shutil.copytree(warm, path, dirs_exist_ok=True)
        return path
