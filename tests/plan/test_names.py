"""The names that a plan may use."""

from pathlib import Path

import pytest

from bench.plan import names


@pytest.mark.parametrize("table", [names.LAYERS, names.IMPLEMENTATIONS])
def test_every_name_says_what_it_stands_for(table: dict[str, str]) -> None:
    """Each name comes with one line that says what it stands for, and no two say the same."""
    assert all(meaning.strip() and "\n" not in meaning for meaning in table.values())
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eager", True),
        ("compiled_sdpa", True),
        ("module:attribute", True),
        ("package.module:box.attribute", True),
        ("sdap", False),
        ("Eager", False),
        ("", False),
        (":", False),
        ("module:", False),
        (":attribute", False),
        ("online[block_tokens=64]", True),
        ("module:attribute[a=1]", True),
        ("online[block_tokens]", False),
        ("online[", False),
    ],
)
def test_is_implementation(name: str, expected: bool) -> None:
    """A name of the suite and `module:attribute` can stand for an implementation, half of the latter can't."""
    assert names.is_implementation(name) is expected


def test_an_installed_implementation_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that an installed package gives to its adapter can stand for an implementation."""
    distribution = tmp_path / "users_kernel-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: users-kernel\nVersion: 1.0\n", encoding="utf-8")
    (distribution / "entry_points.txt").write_text(
        "[attention_bench.implementations]\ninstalled = users_kernel:adapt\n[another.group]\nforeign = a:b\n",
        encoding="utf-8",
    )
    before = names.is_implementation("installed")
    monkeypatch.syspath_prepend(tmp_path)

    assert not before
    assert names.is_implementation("installed")
    assert not names.is_implementation("foreign")
    assert [names.is_own(name) for name in ("installed", "mykernel:adapt", "eager")] == [True, True, False]
