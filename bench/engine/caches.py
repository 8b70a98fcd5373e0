"""The folders of the compiler's caches, one for each case, and what the engine knows of their content."""

import shutil
from collections.abc import Hashable
from pathlib import Path

WARM = "warm"
"""The name of the cache that servers fill when they start; those of cases begin as copies of it."""

Files = dict[str, tuple[int, ...]]


class Caches:
    """Caches below a folder.

    The engine keeps the content of each in memory, because any process of the user can write into the files. What
    differs is put back before the cache is used again: a kernel that another one has changed would crash or be wrong.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[Hashable, int] = {}
        self._contents: dict[int, dict[str, bytes]] = {}
        self._seen: dict[int, Files] = {}

    def path(self, name: Hashable) -> Path:
        """Return the folder of a cache."""
        return self._folder / f"compiled-{self._number(name)}"

    def take(self, name: Hashable) -> None:
        """Keep what lies in a cache now; what can't be read is made again."""
        number, path = self._number(name), self.path(name)
        now = _files(path)
        kept, seen = self._contents.setdefault(number, {}), self._seen.get(number, {})
        for file in kept.keys() - now.keys():
            del kept[file]
        for file in [file for file, state in now.items() if seen.get(file) != state]:
            content = _read(path / file)
            if content is None:
                kept.pop(file, None)
            else:
                kept[file] = content
        self._seen[number] = now

    def take_away(self, name: Hashable) -> None:
        """Keep what lies in a cache, and remove it: a process that has loaded it needs no name of a file any more."""
        self.take(name)
        shutil.rmtree(self.path(name), ignore_errors=True)
        self._seen[self._number(name)] = {}

    def is_changed(self, name: Hashable) -> bool:
        """Return whether a file has another content than when the cache was last put back or taken."""
        number, path = self._number(name), self.path(name)
        now, seen = _files(path), self._seen.get(number, {})
        return any(now.get(file) != seen[file] and _read(path / file) != self._contents[number][file] for file in seen)

    def put_back(self, name: Hashable) -> None:
        """Make a cache what it was when it was last taken; a new one is a copy of that of servers.

        If the system doesn't let it be written, it is empty.
        """
        number, path = self._number(name), self.path(name)
        contents = self._contents.setdefault(number, dict(self._contents.get(self._number(WARM), {})))
        now, seen = _files(path), self._seen.get(number, {})
        changed = [file for file in contents.keys() | now.keys() if now.get(file) != seen.get(file, ())]
        if not changed and path.is_dir():
            return
        try:
            for file in changed:
                _write(path / file, contents.get(file))
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
        self._seen[number] = _files(path)

    def _number(self, name: Hashable) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write(path: Path, content: bytes | None) -> None:
    """Give a file its content, or remove it; what else lies in its place goes."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _files(folder: Path) -> Files:
    """Return the files of a folder with what changes if one is written: its size, times, and place on the disk."""
    states: Files = {}
    for path in folder.rglob("*"):
        try:
            state = path.lstat()
        except OSError:  # it has just gone
            continue
        if not path.is_dir() or path.is_symlink():
            states[str(path.relative_to(folder))] = state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino
    return states
