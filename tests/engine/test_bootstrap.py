"""The program that starts the suite in any interpreter, and the sources of its imports."""

import subprocess
import sys
from pathlib import Path

from bench.engine.worker import BOOTSTRAP


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
    command = [sys.executable, "-P", BOOTSTRAP, "users", "7"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("['7'] True", "")
