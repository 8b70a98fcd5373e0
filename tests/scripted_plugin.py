"""A plugin of pytest that has `pytest bench` measure with workers that make their times up, on a quiet machine."""

from bench.engine import pool, preflight
from bench.engine.preflight import Preflight

pool.MODULE = "tests.engine.scripted_server"
preflight.watch = lambda *_: Preflight(0.0, 0, 0.0)
