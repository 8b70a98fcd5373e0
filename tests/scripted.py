"""`python -m tests.scripted run` is `python -m bench run` with workers that make their times up, on a quiet machine.

`pytest -p tests.scripted bench` is `pytest bench` with them.
"""

import sys
from unittest.mock import Mock

from bench.cli import main
from bench.engine import pool
from bench.machine import quiet
from bench.machine.quiet import Preflight

pool.MODULE = "tests.engine.scripted_server"
quiet.watch = lambda *_: Preflight(0.0, 0, 0.0)
sys.modules["bench.show.pages.run"] = Mock(write=Mock(return_value=None))
"""No page is made, which takes seconds."""

if __name__ == "__main__":
    sys.exit(main())
