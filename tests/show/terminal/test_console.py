"""The writer of blocks for the terminal, and the stamp on every line."""

import pytest
from rich.console import Group
from rich.text import Text

from bench.show.blocks import of_texts
from bench.show.terminal.console import Stamped, render, rendered


@pytest.mark.parametrize("width", [20, 40, 100])
def test_every_line_begins_with_the_stamp(width: int) -> None:
    """What is too long for the console is folded, and each of its lines is stamped."""
    content = Group(Text("a line"), Text("a much longer line " * 4), Text("one\ntwo"), Text(""))
    lines = rendered(Stamped(content, "STAMP"), width=width).splitlines()
    assert all(line.startswith("STAMP") for line in lines)
    assert max(map(len, lines)) <= width
    assert "".join(lines).replace("STAMP", "").replace(" ", "") == f"aline{'amuchlongerline' * 4}onetwo"


def test_styles_of_the_content_stay() -> None:
    """What is bold without a stamp is bold with it."""
    assert "\x1b[1mbold\x1b[0m" in rendered(Stamped(Text("bold", "bold"), "STAMP"), colour=True)


def test_a_table_fits_the_console() -> None:
    """Text stands to the left and folds where room lacks, numbers to the right; an empty column is left out."""
    rows = [("a", "many words that fold", "", "1.0 s"), ("b", "few", "", "20 s")]
    table = of_texts(["name", "text", "none", "time"], rows, numbers=["time"], indent=2)
    assert rendered(render([table]), width=60).splitlines() == [
        "  name  text                   time",
        "  a     many words that fold  1.0 s",
        "  b     few                    20 s",
    ]
    assert rendered(render([table]), width=27).splitlines() == [
        "  name  text           time",
        "  a     many words    1.0 s",
        "        that fold",
        "  b     few            20 s",
    ]
