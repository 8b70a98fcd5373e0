"""The writer of blocks for the terminal, and the stamp on every line."""

import re

import pytest

from bench.show.blocks import BAD, HEAD, Block, Code, Lines, of_texts
from bench.show.terminal.console import console, rendered


@pytest.mark.parametrize("width", [20, 40, 100])
def test_every_line_begins_with_the_stamp(width: int) -> None:
    """What is too long for the console is folded, and each of its lines is stamped."""
    content = Lines(["a line", "a much longer line " * 4, "one\ntwo", ""])
    lines = rendered([content], "STAMP", width=width).splitlines()
    assert all(line.startswith("STAMP") for line in lines)
    assert max(map(len, lines)) <= width
    assert "".join(lines).replace("STAMP |", "").replace(" ", "") == f"aline{'amuchlongerline' * 4}onetwo"


def test_styles_of_the_content_stay() -> None:
    """What is bold without a stamp is bold with it."""
    assert "\x1b[1mbold\x1b[0m" in rendered([Lines(["bold"], HEAD)], "STAMP", colour=True)


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
