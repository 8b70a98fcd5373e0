"""A GPU, measured as a GPU: `python -m tests.drills.gpu OUT [--device cpu] [--parts A,B] [--within-s S]`.

Each part has a process and a time limit of its own; a line says at once whether it passed, failed or was skipped. Below
the line of one that failed is the end of its output: a traceback, if there is one.
OUT gets these lines, all output, and the runs, packed; it needs no network. Exit status 1 if a part failed.
Packages that are missing can come as wheels from `--wheels FOLDER`.
"""

import argparse
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

PARTS: dict[str, int] = {
    "imports": 30,
    "forks": 40,
    "rows": 60,
    "timings": 40,
    "twins": 140,
    "known": 10,
    "slowed": 10,
    "streams": 45,
    "quick": 130,
    "packed": 60,
    "profile": 30,
    "hacks": 60,
    "backends": 45,
    "compiled": 60,
    "tests": 60,
    "correct": 90,
}
"""The seconds that each part may take, in order: what is broken, what the timers do, and what is measured with them."""

WITHIN_S = 480
"""The seconds that all parts may take: not each of them needs all of its own."""

SKIPPED = 77
"""The exit status of a part that can't be tried here, as in Automake's tests."""

LINES, LOG = "parts.txt", "log.txt"
"""The files in OUT beside the packed runs."""

PACKED = {part: f"{part}.tar.gz" for part in ("twins", "quick", "packed", "profile")}
"""The parts whose runs have a file of their own in OUT."""

OTHERS = "others.tar.gz"
"""The file with the runs of the other parts."""

MOST_BYTES = 15 * 2**20
"""The most bytes of a file in OUT."""

TAIL = 12
"""The lines of output below the line of a part that failed."""

ENDS = ("Fatal Python error: ", "Timeout (")
"""What faulthandler writes before the calls of all threads, the innermost first: a part crashed, or took too long."""


class FailedError(Exception):
    """A part that found something wrong; its text says what."""


class SkippedError(Exception):
    """A part that can't be tried on this device; its text says why."""


def judged(said: Iterable[str], is_wrong: object) -> str:
    """Return what a part has seen, in one line; raises FailedError with it if it is wrong."""
    line = "; ".join(said)
    if is_wrong:
        raise FailedError(line)
    return line


def packages() -> list[str]:
    """Return a line for each package of the group `bench` that is missing, or older than this project needs."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ["packaging is missing"]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    lines = []
    for needed in (Requirement(each) for each in [*groups["report"], *groups["bench"][1:]]):
        try:
            version = importlib.metadata.version(needed.name)
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"{needed.name} is missing")
            continue
        if not needed.specifier.contains(version, prereleases=True):
            lines.append(f"{needed.name} {version} is installed, {needed} is needed")
    return lines


def install(wheels: Path, folder: Path) -> str:
    """Unpack wheels into a folder; return why that failed, empty if it did not."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*command, *map(str, wheels.glob("*.whl"))], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def tried(part: str, device: str, runs: Path, log: Path, most_s: float) -> list[str]:
    """Return the line of a part, which writes its runs into a folder, and the end of its output if it failed.

    A part that takes longer is ended, with all processes that it started.
    """
    begin_s = time.monotonic()
    command = [sys.executable, "-m", "tests.drills.gpu_parts", part, device, str(runs / part), str(begin_s + most_s)]
    with log.open("a+", encoding="utf-8", errors="replace") as output:
        output.write(f"\n===== {part}\n")
        output.flush()
        start = output.tell()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
        try:
            status: int | None = process.wait(most_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(start)
        said = [line for line in output.read().splitlines() if line.strip()]
    end = (_stack(said) if status is None or status < 0 else []) or said[-TAIL:]
    if status is None:
        return [f"{part}: failed: took longer than {most_s:.0f} s", *(f"    {each}" for each in end)]
    ended = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
    if status < 0:
        ended = f"failed: ended by {signal.Signals(-status).name}"
    last = end.pop(0 if end[0].startswith(ENDS) else -1) if end else "no output"
    line = f"{part}: {ended}: {last} ({time.monotonic() - begin_s:.0f} s)"
    return [line, *(f"    {each}" for each in end)] if ended.startswith("failed") else [line]


def _stack(said: Sequence[str]) -> list[str]:
    """Return the innermost calls of the thread that crashed, or else of the main one, after a line that says why.

    The last that was said before stands below that line. Empty if faulthandler wrote nothing.
    """
    begin = next((number for number, line in enumerate(said) if line.startswith(ENDS)), len(said))
    threads = [number for number in range(begin, len(said)) if re.match(r"(Current t|T)hread 0x", said[number])]
    if not threads:
        return []
    of = next((number for number in threads if said[number].startswith("Current")), threads[-1])
    return [said[begin], *said[:begin][-1:], *said[of : of + TAIL]]


def keep(part: str, runs: Path, out: Path) -> str:
    """Pack the runs of a part, or of all parts that share its file; return which files are too large to be in it."""
    packed = out / PACKED.get(part, OTHERS)
    parts = [part] if part in PACKED else [name for name in PARTS if name not in PACKED]
    paths = [path for name in parts for path in sorted((runs / name).rglob("[!.]*")) if path.is_file()]
    left_out: list[Path] = []
    while paths:
        with tarfile.open(packed, "w:gz") as file:
            for path in paths:
                file.add(path, path.relative_to(runs))
        if packed.stat().st_size <= MOST_BYTES:
            break
        left_out.append(max(paths, key=lambda path: path.stat().st_size))
        paths.remove(left_out[-1])
    return ", ".join(str(path.relative_to(runs)) for path in left_out)


def shorten(log: Path) -> None:
    """Take the middle out of a log that is too long."""
    text = log.read_bytes()
    if len(text) > MOST_BYTES:
        half = MOST_BYTES // 2 - 100
        log.write_bytes(text[:half] + b"\n===== what was here is left out\n" + text[-half:])


def main(words: list[str]) -> int:
    """Try the parts and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.gpu", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="A,B", help="of " + ", ".join(PARTS))
    parser.add_argument("--within-s", type=float, default=WITHIN_S, metavar="S", help="seconds for all; parts share it")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER")
    chosen = parser.parse_args(words)
    parts = chosen.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--parts {','.join(unknown)}: there is no such part; there are {', '.join(PARTS)}")
    begin_s, slower = time.monotonic(), chosen.within_s / WITHIN_S
    chosen.out.mkdir(parents=True, exist_ok=True)
    lines, log = chosen.out / LINES, chosen.out / LOG
    for path in (lines, log):
        path.write_text("")

    def say(line: str) -> None:
        print(line, flush=True)
        with lines.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    with tempfile.TemporaryDirectory(prefix="gpu-drill-") as scratch:
        site, runs = Path(scratch) / "site", Path(scratch) / "runs"
        if chosen.wheels:
            if problem := install(chosen.wheels, site):
                parser.error(f"--wheels {chosen.wheels}: {problem}")
            sys.path.insert(0, str(site))
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
        missing = packages()
        say(f"Python {sys.version.split()[0]}, {chosen.device}; packages: {'; '.join(missing) or 'all there'}")
        failed = 0
        for part in parts:
            left_s = chosen.within_s - (time.monotonic() - begin_s)
            if left_s < 5:
                say(f"{part}: skipped: no time was left")
                continue
            line, *below = tried(part, chosen.device, runs, log, min(left_s, slower * PARTS[part]))
            failed += line.startswith(f"{part}: failed")
            for each in (line, *below):
                say(each)
            if left_out := keep(part, runs, chosen.out):
                say(f"    left out of {PACKED.get(part, OTHERS)}, which may have {MOST_BYTES >> 20} MiB: {left_out}")
        shorten(log)
        say(f"{failed} of {len(parts)} parts failed; {time.monotonic() - begin_s:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
