"""The convention of commands: a module and its name are all that a command takes."""

import argparse
import importlib
import pkgutil
import sys
from types import ModuleType

import pytest

from bench import cli, commands
from bench.commands import NAMES
from bench.plan.errors import NotComparable, WrongRequest


def mine(outcome: int | BaseException) -> ModuleType:
    """Return the module of a command that ends as it is told."""

    def run(arguments: argparse.Namespace) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome if arguments.yes else -1

    module = ModuleType("bench.commands.mine", "Do what I say.\n\nAnd no more.")
    vars(module).update(run=run, add_arguments=lambda parser: parser.add_argument("--yes", action="store_true"))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_a_module_that_keeps_the_convention(name: str) -> None:
    """It has help in its first line, adds its arguments, and is run with them."""
    module = importlib.import_module(f"bench.commands.{name}")
    first_line = (module.__doc__ or "").partition("\n")[0]
    assert first_line.endswith(".")
    module.add_arguments(argparse.ArgumentParser())
    assert module.run.__annotations__["return"] is int


def test_every_module_is_a_command() -> None:
    """None is forgotten in the list."""
    assert {module.name for module in pkgutil.iter_modules(commands.__path__)} == {*NAMES}


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(0, 0), (1, 1), (WrongRequest("no"), 2), (NotComparable("no"), 3), (KeyboardInterrupt(), 130)],
)
def test_a_command_that_is_added_is_there(
    outcome: int | BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its help, its arguments, and the exit status that it returns or that its error stands for."""
    monkeypatch.setitem(sys.modules, "bench.commands.mine", mine(outcome))
    monkeypatch.setattr(cli, "NAMES", ("mine",))
    assert cli.main(["mine", "--yes"]) == status
    assert len(capsys.readouterr().err.splitlines()) == (status > 1)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "Do what I say" in capsys.readouterr().out
