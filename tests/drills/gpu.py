"""Everything that a GPU is needed for: `python -m tests.drills.gpu OUT [--device cpu] [--parts A,B] [--within-s S]`.

Each part has a process and a time limit of its own; a line says at once whether it passed, failed or was skipped.
OUT gets these lines, all output, and the runs; it needs no network. Exit status 1 if a part failed.
Packages that are missing can come as wheels from `--wheels FOLDER`.
"""

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

PARTS: dict[str, int] = {
    "tests": 60,
    "correct": 90,
    "kernels": 40,
    "faults": 60,
    "events": 30,
    "spin": 20,
    "memory": 40,
    "twins": 100,
    "quick": 150,
    "profile": 60,
    "launch": 30,
    "recompile": 90,
    "vit": 90,
    "papers": 90,
}
"""The seconds that each part may take, the most important part first."""

WITHIN_S = 520
"""The seconds that all parts may take."""

SKIPPED = 77
"""The exit status of a part that can't be tried here, as in Automake's tests."""

LINES, LOG, RUNS, PAGE = "parts.txt", "log.txt", "runs.tar.gz", "profile.html"
"""The files in OUT."""

MOST_BYTES = 15 * 2**20
"""The most bytes of a file in OUT: larger ones of a run are left out."""


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


def tried(part: str, device: str, runs: Path, log: Path, most_s: float) -> str:
    """Return the line of a part, which writes its runs into a folder; a part that takes longer is ended with all."""
    command = [sys.executable, "-m", "tests.drills.gpu_parts", part, device, str(runs / part), str(most_s)]
    begin_s = time.monotonic()
    with log.open("a+", encoding="utf-8", errors="replace") as output:
        output.write(f"\n===== {part}\n")
        output.flush()
        start = output.tell()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
        try:
            status: int | None = process.wait(most_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            status = None
        output.seek(start)
        said = [line for line in output.read().splitlines() if line.strip()]
    last = said[-1] if said else ""
    word = {None: "failed: took longer", 0: "passed", SKIPPED: "skipped"}.get(status, "failed")
    return f"{part}: {word}: {last} ({time.monotonic() - begin_s:.0f} s)"


def keep(runs: Path, out: Path) -> None:
    """Pack all runs into one file, and copy the page of profiles."""
    with tarfile.open(out / RUNS, "w:gz") as packed:
        for path in sorted(runs.rglob("*")):
            if path.is_file() and path.stat().st_size < MOST_BYTES and path.suffix != ".svg":
                packed.add(path, path.relative_to(runs))
    for page in runs.rglob(PAGE):
        (out / PAGE).write_bytes(page.read_bytes())


def main(words: list[str]) -> int:
    """Try the parts and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.gpu", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="A,B", help="of " + ", ".join(PARTS))
    parser.add_argument("--within-s", type=float, default=WITHIN_S, metavar="S")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER")
    chosen = parser.parse_args(words)
    parts = chosen.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--parts {','.join(unknown)}: there is no such part; there are {', '.join(PARTS)}")
    begin_s = time.monotonic()
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
            line = tried(part, chosen.device, runs, log, min(left_s, PARTS[part]))
            failed += ": failed" in line
            say(line)
            keep(runs, chosen.out)
        say(f"{failed} of {len(parts)} parts failed; {time.monotonic() - begin_s:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
