"""Control characters in foreign text: none may reach a terminal or reverse the direction of text."""

import re

DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""The characters that change the direction of text, so that it can read as something else."""

WRITTEN = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"},
    **{code: f"\\u{code:04x}" for code in DIRECTIONS},
}
"""The escape for each control character; line ends and tabs stay."""

CONTROLLING = re.compile(f"[{''.join(map(chr, WRITTEN))}]")


def visible(text: str) -> str:
    """Return a text with its control characters escaped."""
    return text.translate(WRITTEN)
