"""Files of a run folder: each is replaced at once or not at all, and one process writes them.

The lock file names the writer, also on a file system that machines share. It is made by a hard link, or by exclusive
creation if there are no links; both are atomic on NFS, on which flock may do nothing. A lock whose process has ended is
stale, and is taken over.
"""

import contextlib
import itertools
import json
import os
import shlex
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import psutil

from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.invocation import IS_INSTALLED, RESULTS

LOCK = "writer.lock"

IGNORED = ".gitignore"

MADE: set[Path] = set()
"""The folders that this process made for a run: one that stays empty goes."""

SAME_START_S = 1.0
"""Two readings of one process's start differ by less; the starts of two processes with one number differ by more."""


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


def new(parent: Path, name: str) -> Path:
    """Make a folder with a name, and a number after it if there is one of that name, as by a run of the same second.

    One that can't be made is returned all the same: whoever writes into it will say why.
    """
    MADE.update(path for path in (parent, *parent.parents) if not path.exists())
    with contextlib.suppress(OSError):
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = parent / (name if number == 1 else f"{name}-{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                MADE.add(folder)
                return folder
    return parent / name


def hide(folder: Path) -> None:
    """Have git leave out a folder of ours and all that lies in it, unless the folder says something to git already.

    In the results of a checkout of the suite nothing is written: git leaves them out there, but for published ones.
    """
    path = folder / IGNORED
    if (IS_INSTALLED or not folder.resolve().is_relative_to(RESULTS)) and not path.exists():
        with contextlib.suppress(OSError):
            path.write_text("*\n", encoding="utf-8")


def read_objects(path: Path) -> dict[str, dict[str, Any]]:
    """Return the JSON objects in a file by their names; none if the file can't be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    objects = content if isinstance(content, dict) else {}
    return {name: value for name, value in objects.items() if isinstance(value, dict)}


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove the temporary files of these names that a killed process left."""
    for name in names:
        for left in folder.glob(f".{name}.*"):
            left.unlink(missing_ok=True)


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    `started_s` is its start in seconds after that of its machine, which setting the clock doesn't change.
    `machine`, `boot` and `pids` name the machine, its last start and the set of process numbers, empty if unknown.
    `token` differs for each lock.
    """

    host: str
    pid: int
    started_s: float
    machine: str
    boot: str
    pids: str
    token: str

    @classmethod
    def here(cls) -> Self:
        """Return this process as the holder of a new lock."""
        return cls(
            host=socket.gethostname(),
            pid=os.getpid(),
            started_s=_started_s(os.getpid()) or 0.0,
            machine=_text("/etc/machine-id"),
            boot=_text("/proc/sys/kernel/random/boot_id"),
            pids=_link("/proc/self/ns/pid"),
            token=uuid.uuid4().hex,
        )

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the holder that a lock file names, None without a file; raises WrongRequest for a broken one."""
        try:
            content = json.loads(path.read_bytes())
            return cls(**{field.name: field.type(content[field.name]) for field in fields(cls)})  # type: ignore[operator]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise WrongRequest(
                f"{path} is no lock of attention-bench, or half of one; if no other run writes into "
                f"{path.parent}: rm {shlex.quote(str(path))}"
            ) from None

    def is_gone(self, here: "Holder") -> bool:
        """Return whether the process is known to have ended, as seen from another process."""
        if self.host != here.host:
            return False
        if self.boot != here.boot:  # the machine was started anew, unless another one has the same host name
            return bool(self.machine) and self.machine == here.machine
        if self.pids != here.pids:  # another container: its processes can't be seen from here
            return False
        started_s = _started_s(self.pid)
        return started_s is None or abs(started_s - self.started_s) > SAME_START_S


class Lock:
    """The right to write into a folder; `notice` names the stale lock that was taken over, empty if there was none."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self.notice = ""
        self._me = Holder.here()
        self._is_held = False

    def acquire(self) -> None:
        """Take the lock.

        Raises WrongRequest if another process holds it or may hold it, OSError if the folder can't be written.
        """
        mine = self.path.with_name(f".{LOCK}.{self._me.token}")
        try:
            mine.write_text(json.dumps(asdict(self._me), indent=2) + "\n", encoding="utf-8")
            while not (_link_or_create(mine, self.path) or self._take_over(mine)):
                pass  # the lock was released in between: try again
            self._is_held = True
            self._tidy()
        finally:
            mine.unlink(missing_ok=True)

    def _take_over(self, mine: Path) -> bool:
        """Take a stale lock over; return False if it changed in the meantime.

        Several processes may see the stale lock. Whoever first creates the file named after the dead holder's token
        wins; if the winner dies, its own token is contested in the same way.
        """
        first = latest = self._stale(self.path)
        claim = self.path
        while latest is not None:
            claim = self.path.with_name(f".{LOCK}.of-{latest.token}")
            if _link_or_create(mine, claim):
                break
            latest = self._stale(claim)
        if first is None or latest is None:
            return False
        if Holder.read(self.path) != first:  # another process took it over before our claim
            claim.unlink(missing_ok=True)
            return False
        mine.replace(self.path)
        self.notice = f"{self.path} was left by process {first.pid} on {first.host}, which has ended: taken over"
        return True

    def _tidy(self) -> None:
        """Remove claims that are done, and the files of processes that ended while they took the lock."""
        for path in self.path.parent.glob(f".{LOCK}.*"):
            try:
                holder = Holder.read(path)
            except WrongRequest:
                continue  # a process is writing it
            if holder and (holder.token == self._me.token or holder.is_gone(self._me)):
                path.unlink(missing_ok=True)

    def _stale(self, path: Path) -> Holder | None:
        """Return the holder of a lock if it has ended, None without a lock; raises WrongRequest if it may still run."""
        holder = Holder.read(path)
        if holder is None or holder.is_gone(self._me):
            return holder
        fact = f"{self.path.parent} is being written by process {holder.pid} on {holder.host}"
        if holder.host == self._me.host and holder.pids == self._me.pids and holder.boot == self._me.boot:
            raise WrongRequest(f"{fact}; wait for its end, or use another folder")
        raise WrongRequest(
            f"{fact}, which can't be seen from here; if that process has ended: rm {shlex.quote(str(path))}; "
            "otherwise wait for its end, or use another folder"
        )

    def check(self) -> None:
        """Raise CannotWrite if the lock is not ours any more, because it or the folder was removed."""
        with refusing(f"{self.path} can't be read", CannotWrite):
            holder = Holder.read(self.path)
        if holder is None:
            raise CannotWrite(f"{self.path} is gone: the folder was removed or moved, or its lock was")
        if holder.token != self._me.token:
            raise CannotWrite(f"{self.path} was taken by process {holder.pid} on {holder.host}")

    def release(self) -> None:
        """Give the lock back, if it is ours."""
        if self._is_held:
            self._is_held = False
            with contextlib.suppress(WrongRequest, OSError):  # it isn't ours, or the folder can't be written any more
                self.check()
                self.path.unlink()


def _link_or_create(source: Path, path: Path) -> bool:
    """Make a file with the content of another one at once; return False if the name is taken."""
    try:
        os.link(source, path)
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):
            return source.samefile(path)  # NFS may report a link as failed that was made
        return False
    except OSError:  # a file system without hard links
        return _created(path, source.read_bytes())
    return True


def _created(path: Path, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        path.unlink()
        raise
    return True


def _started_s(pid: int) -> float | None:
    """Return when a process began, in seconds after the machine started, None if it has ended."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time() - psutil.boot_time()
    except psutil.NoSuchProcess:
        return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def is_held(folder: Path) -> bool:
    """Return whether a process writes into a folder, as far as is known here: one of another machine may have ended."""
    try:
        holder = Holder.read(folder / LOCK)
    except WrongRequest:
        return False
    return holder is not None and not holder.is_gone(Holder.here())
