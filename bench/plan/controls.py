"""Control characters in texts of other people: none may command a terminal, or turn the text around."""

import re

DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""The characters that turn the direction of text around, so that it reads as another one."""

WRITTEN = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"},
    **{code: f"\\u{code:04x}" for code in DIRECTIONS},
}
"""The control characters, and how each is written out; line ends and tabs stay."""

CONTROLLING = re.compile(f"[{''.join(map(chr, WRITTEN))}]")


def visible(text: str) -> str:
    """Return a text whose control characters are written out."""
    return text.translate(WRITTEN)
