"""The program that starts the suite in any interpreter: what it imports from where, and what it says is missing."""

import subprocess
import sys
from pathlib import Path

from bench.engine.worker import BOOTSTRAP


def started(folder: Path, module: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Return how a module that was started in a folder ended."""
    command = [sys.executable, "-P", BOOTSTRAP, module, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_suite_is_ours_and_all_else_is_the_users(tmp_path: Path) -> None:
    """A repository with packages of our names hides none of ours; its other modules are found, and get their words.

    A worker needs torch and little else: another environment may lack pandas.
    """
    for name in ("bench", "impls", "attention_bench", "runpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hers')\n")
    (tmp_path / "users.py").write_text(
        "import sys\nsys.modules['pandas'] = None\n"
        "import bench.plan, bench.measure.server, bench.measure.judge, attention_bench.impls, impls\n"
        "print(sys.argv[1:], attention_bench.impls is impls)\n"
    )
    done = started(tmp_path, "users", "7")
    assert (done.stdout.strip(), done.stderr) == ("['7'] True", "")


def test_a_package_that_a_server_needs_is_named_with_its_command(tmp_path: Path) -> None:
    """The line is the last of its log. A module that the suite doesn't need is an error as it stands."""
    (tmp_path / "bare.py").write_text("import sys\nsys.modules['pynvml'] = None\nimport pynvml\n")
    (tmp_path / "users.py").write_text("import not_there\n")
    bare, users = started(tmp_path, "bare"), started(tmp_path, "users")
    assert f"{sys.executable} -m pip install" in bare.stderr.splitlines()[-1]
    assert (bare.returncode, users.returncode) == (1, 1)
    assert "pip" not in users.stderr
