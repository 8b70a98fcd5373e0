"""What earlier versions had."""

import argparse

import pytest

from bench.harness import options
from bench.plan.removed import REMOVED, gone_of_command, options_of_run


def test_only_what_is_gone_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command, one of its options or a value of one; other words of the line are nothing to it."""
    monkeypatch.setitem(REMOVED, "run --dtype float8", "another one")
    for words in (["--dtype", "float8"], ["--sweep", "x", "--dtype=float8"]):
        assert gone_of_command(["run", *words]) == "run --dtype float8 is gone: another one"
    assert gone_of_command(["run", "--dtype", "float16"]) == ""
    assert all(option.startswith("--") and " " not in option for option in options_of_run())
    assert gone_of_command(["selfcheck", "--run", "x"]) == f"selfcheck is gone: {REMOVED['selfcheck']}"
    for words in (["--diff"], ["--top", "3", "--diff=a"]):
        assert gone_of_command(["profile", *words]).startswith("profile --diff is gone: ")
    assert gone_of_command(["compare", "--diff"]) == gone_of_command(["profile"]) == gone_of_command([]) == ""


@pytest.mark.parametrize("option", options_of_run())
def test_an_option_of_run_that_is_gone_ends_any_parser_of_its_options(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """So `pytest bench` has the line too; its help has none."""
    parser = argparse.ArgumentParser()
    options.add(lambda _title: parser.add_argument)
    for words in ([option], [option, "x"], [f"{option}=x"]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert f"run {option} is gone: {REMOVED[f'run {option}']}" in capsys.readouterr().err
    assert option not in parser.format_help()
