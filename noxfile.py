"""The project's stages: `nox -l` lists them."""

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests", "lint"]

PYPROJECT = nox.project.load_toml("pyproject.toml")


def _install(session: nox.Session, group: str) -> None:
    """Install a dependency group of pyproject.toml at the pinned versions."""
    session.install("-c", "constraints.txt", *nox.project.dependency_groups(PYPROJECT, group))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure a sweep: `nox -s bench -- --sweep vit --impl eager,sdpa`."""
    _install(session, "bench")
    session.run("python", "-m", "pytest", "bench", *session.posargs)


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two results: `nox -s compare -- BASE NEW`."""
    _install(session, "report")
    session.run("python", "-m", "bench", "compare", *session.posargs)


@nox.session
def plot(session: nox.Session) -> None:
    """Draw the pictures of a run: `nox -s plot -- RUN`."""
    _install(session, "report")
    session.run("python", "-m", "bench", "plot", *session.posargs)


@nox.session
def profile(session: nox.Session) -> None:
    """Write traces of a run's cases: `nox -s profile -- RUN --case implementation=sdpa,num_tokens=577`."""
    _install(session, "profile")
    session.run("python", "-m", "bench", "profile", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the test suite, a part of it on each core."""
    _install(session, "test")
    session.run("python", "-m", "pytest", "--numprocesses", "logical", "--dist", "worksteal", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, style and types."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
