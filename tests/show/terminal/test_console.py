"""The writer of blocks for the terminal."""

import re

import pytest

from bench.show.blocks import BAD, Block, Code, Lines, of_texts
from bench.show.terminal.console import console, rendered


def test_a_table_fits_the_console() -> None:
    """Text stands to the left and folds where room lacks, numbers to the right; an empty column is left out."""
    rows = [("a", "many words that fold", "", "1.0 s"), ("b", "few", "", "20 s")]
    table = of_texts(["name", "text", "none", "time"], rows, numbers=["time"], indent=2)
    assert rendered([table], width=60).splitlines() == [
        "  name  text                   time",
        "  a     many words that fold  1.0 s",
        "  b     few                    20 s",
    ]
    assert rendered([table], width=27).splitlines() == [
        "  name  text           time",
        "  a     many words    1.0 s",
        "        that fold",
        "  b     few            20 s",
    ]


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\x1b]0;title\x07b", "a\x9b2Jb", "a\u202eb", "a\rb"])
def test_no_text_commands_the_terminal(text: str) -> None:
    """Wherever it stands, in lines, cells or a heading, and with colours too, it comes out as text or not at all."""
    blocks: list[Block] = [Lines([text], BAD), of_texts([text], [[text]]), Code([text])]
    plain, coloured = (rendered(blocks, colour=colour) for colour in (False, True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert not {*plain} & {*"\x1b\x07\x9b\u202e\r"}
    assert plain.count("b\n") == 4


def test_a_console_writes_control_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line prints through it, errors too."""
    console().print("a\x1b[2Jb", markup=False)
    assert capsys.readouterr().out == "a\\x1b[2Jb\n"
