"""`python -m pytest bench` is `python -m bench run`: pytest reads the options, and no test runs."""

import pytest

from bench.harness import options
from bench.machine.signals import INTERRUPTED, interrupt, on_end, restore
from bench.plan.errors import WrongRequest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a sweep."""
    options.add(lambda title: parser.getgroup(f"attention-bench: {title}").addoption)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Measure in place of a session of tests; a wrong request and Ctrl-C have pytest's statuses."""
    option = config.option
    if option.help or option.version:
        return None
    from bench.commands.run import run  # slow to import

    option.list |= option.collectonly
    handlers = on_end(interrupt)
    try:
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            status = run(option)
    except WrongRequest as error:
        raise pytest.UsageError(*str(error).splitlines()) from None
    finally:
        restore(handlers)
    return int(pytest.ExitCode.INTERRUPTED) if status == INTERRUPTED else status
