"""What pytest reads in this folder: the hooks and fixtures of `pytest bench`."""

from bench.harness.pytest_plugin import (  # noqa: F401
    pytest_addoption,
    pytest_configure,
    pytest_generate_tests,
    pytest_report_teststatus,
    pytest_runtestloop,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_unconfigure,
    run,
)
