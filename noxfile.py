"""The project's stages: `nox -l` lists them."""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests", "lint"]

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")

INCLUDED = [group["include-group"] for group in PYPROJECT["dependency-groups"]["runtimes"]]
RUNTIMES = [name for name in INCLUDED if name != "bench"]
"""The dependency groups of runtimes beside torch."""

VERSION = re.compile(r"[0-9]+[.][0-9]")
"""How a version of torch begins; no implementation has such a name."""


def _install(session: nox.Session, group: str) -> None:
    """Install a dependency group of pyproject.toml at the pinned versions."""
    session.install("-c", "constraints.txt", *nox.project.dependency_groups(PYPROJECT, group))


def _run(session: nox.Session, *words: str, **options: Any) -> None:
    """Run a module of Python in the folder in which nox was called: there are the user's own modules and results."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with session.chdir(session.invoked_from):
        session.run("python", "-m", *words, env={"PYTHONPATH": path}, **options)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure a sweep: `nox -s bench -- --sweep vit --impl eager,sdpa`.

    Install the other runtimes that the command names (`--sweep runtimes` for all, `--impl openvino` for one), and the
    model libraries if the command or its sweep file names one of their layers.
    """
    _install_named(session)
    # after Ctrl-C it ends its workers and says how to go on
    _run(session, "bench", "run", *session.posargs, interrupt_timeout=30, terminate_timeout=5)


def _install_named(session: nox.Session) -> None:
    """Install what measures, and the runtimes and libraries of models that the words or their sweep files name."""
    _install(session, "bench")
    files = [Path(session.invoked_from, word) for word in session.posargs if word.endswith(".toml")]
    words = " ".join([*session.posargs, *(file.read_text(encoding="utf-8") for file in files if file.is_file())])
    if re.search(r"\b(timm|torchvision|transformers)\b", words):
        _install(session, "models")
    for group in (name for name in RUNTIMES if name in words or "runtimes" in words):
        _install(session, group)


@nox.session
def advise(session: nox.Session) -> None:
    """Measure a model and say which attention to use: `nox -s advise -- timm:vit_small_patch16_224 --batch 8`."""
    _install(session, "models")
    _run(session, "bench", "advise", *session.posargs, interrupt_timeout=30, terminate_timeout=5)


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two runs: `nox -s compare -- BASE NEW`."""
    _install(session, "report")
    _run(session, "bench", "compare", *session.posargs)


@nox.session
def plot(session: nox.Session) -> None:
    """Draw the pictures of a run: `nox -s plot -- RUN`."""
    _install(session, "report")
    _run(session, "bench", "plot", *session.posargs)


@nox.session
def profile(session: nox.Session) -> None:
    """Profile cases of a run: `nox -s profile -- RUN --case implementation=sdpa,num_tokens=577`."""
    _install(session, "profile")
    _run(session, "bench", "profile", *session.posargs)


@nox.session
def tensorboard(session: nox.Session) -> None:
    """Serve the traces of a run on localhost: `nox -s tensorboard -- RUN [--port 6006]`."""
    if not session.posargs:
        session.error("expected a run: nox -s tensorboard -- RUN")
    run, *options = session.posargs
    traces = Path(session.invoked_from, run) / "traces" / "tensorboard"
    if not any(traces.glob("*/*.pt.trace.json*")):
        session.error(f"{run} has no traces for TensorBoard; write them with nox -s profile -- {run}")
    _install(session, "profile")
    session.run("tensorboard", "--logdir", str(traces), *options, "--host", "127.0.0.1")


@nox.session
def duel(session: nox.Session) -> None:
    """Measure two sides alternately: `nox -s duel -- eager sdpa`, or two versions of torch, `-- 2.13.0 2.12.0 sdpa`."""
    if not all(VERSION.match(word) for word in session.posargs[:2]):
        _install_named(session)
        _run(session, "bench", "duel", *session.posargs, interrupt_timeout=30, terminate_timeout=5)
        return
    if len(session.posargs) < 3:
        session.error(
            "expected two implementations, or two versions of torch and one: nox -s duel -- 2.13.0 2.12.0 sdpa"
        )
    first, second, *rest = session.posargs
    _install(session, "report")
    sides = [word for version in (first, second) for word in ("--python", _python_with_torch(session, version))]
    _run(session, "bench", "duel", *rest, *sides, interrupt_timeout=30, terminate_timeout=5)


def _python_with_torch(session: nox.Session, version: str) -> str:
    """Return the interpreter of an environment with this torch, and our other packages at the pinned versions.

    What torch itself needs is not pinned: each of its versions needs others.
    """
    folder = Path(session.virtualenv.location) / f"torch-{version}"
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        session.run(sys.executable, "-m", "virtualenv", "--quiet", str(folder), external=True)
    constraints = folder / "constraints.txt"
    pins = Path("constraints.txt").read_text(encoding="utf-8").splitlines()
    packages = [name for name in nox.project.dependency_groups(PYPROJECT, "bench") if not name.startswith("torch>=")]
    named = {name.partition(">=")[0] for name in packages}
    constraints.write_text("\n".join(pin for pin in pins if pin.partition("==")[0] in named), encoding="utf-8")
    session.run(
        python, "-m", "pip", "install", "-q", "-c", str(constraints), f"torch=={version}", *packages, external=True
    )
    return python


@nox.session
def gpu(session: nox.Session) -> None:
    """Measure publishable results on a GPU in eight minutes: `nox -s gpu -- OUT`; --device cpu rehearses it."""
    _install(session, "bench")
    session.run("python", "-m", "tests.drills.gpu", *session.posargs)


@nox.session
def cuda(session: nox.Session) -> None:
    """Test a CUDA build of torch on a machine without a GPU; may download about 3 GB."""
    _install(session, "test")
    session.run("python", "-m", "pytest", "tests/test_cuda_build.py", "tests/measure/test_devices.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the test suite in one process more than there are cores, because some tests wait.

    Tests of compilers and other runtimes are left out: `nox -s tests -- -m toolchain` runs them.
    """
    _install(session, "test")
    processes = str((os.cpu_count() or 1) + 1)
    chosen = ("-m", "not toolchain")  # of several -m pytest takes the last
    command = ("python", "-m", "pytest", "--numprocesses", processes, "--dist", "worksteal", *chosen, *session.posargs)
    # tests start hundreds of processes, each of which would compile our modules again
    session.run(*command, env={"PYTHONDONTWRITEBYTECODE": ""})


@nox.session(reuse_venv=False)
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it in an empty environment, and measure with it in an empty folder."""
    folder = Path(session.create_tmp(), "wheel")
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), ".")
    session.install("-c", "constraints.txt", *map(str, folder.glob("*.whl")))
    with tempfile.TemporaryDirectory() as empty, session.chdir(empty):
        session.run("attention-bench", "run", "--impl", "eager,sdpa", "--num-tokens", "64", "--within", "10s")


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, style and types."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
