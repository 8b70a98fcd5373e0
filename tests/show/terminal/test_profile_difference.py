"""The difference of two profiles in the terminal."""

import dataclasses

import pytest

from bench.analyse.profile import difference
from bench.show.terminal.console import rendered
from bench.show.terminal.profile_difference import headline, render
from bench.store.profile import KERNEL, OPERATOR, Operator, Profile, Span
from tests.profiles import MIB, profile, stepwise

PRODUCT = Operator("aten::mm", 2, 8e-3, 7 * MIB)
COPY = Operator("aten::copy_", 1, 0.2e-3, int(2.25 * MIB))


def of(*operators: Operator, implementation: str = "eager") -> Profile:
    """Return a profile of these operators."""
    return profile(implementation, operators=operators)


def shown(a: Profile, b: Profile, top: int = 12) -> list[str]:
    """Return the lines of a difference."""
    return rendered(render(a, b, top)).splitlines()


def test_where_it_was_called_is_said() -> None:
    """With what its caller allocates more where the operator itself allocates nothing."""
    clone, empty = Operator("aten::clone", 1, 1e-6, 0), Operator("aten::empty", 1, 1e-6, int(2.25 * MIB))
    copy = dataclasses.replace(COPY, allocated_bytes=0)
    after = dataclasses.replace(
        of(PRODUCT, clone, empty, copy),
        spans=(
            Span("aten::clone", OPERATOR, "host", 0, 0.0, 1e-3),
            Span("aten::empty", OPERATOR, "host", 1, 0.1e-3, 1e-6),
            Span("aten::copy_", OPERATOR, "host", 1, 0.2e-3, 0.2e-3),
        ),
    )
    (line,) = headline(difference(of(PRODUCT), after))
    assert line == "What costs most: aten::copy_ appeared: 1 call, +200 µs, in aten::clone with +2.25 MiB."


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), (COPY,), "aten::copy_ appeared: 1 call, +200 µs, +2.25 MiB."),
        ((COPY,), (dataclasses.replace(COPY, calls=2, self_s=0.5e-3),), "aten::copy_ grew from 1 to 2 calls, +300 µs."),
        ((COPY,), (dataclasses.replace(COPY, allocated_bytes=0),), "aten::copy_ shrank by bytes in 1 call, -2.25 MiB."),
        ((), (dataclasses.replace(PRODUCT, calls=1),), "aten::mm shrank from 2 to 1 calls."),
    ],
)
def test_a_change_is_said_in_plain_words(
    before: tuple[Operator, ...], after: tuple[Operator, ...], expected: str
) -> None:
    """What it costs, and nothing of what didn't change."""
    rest = () if after[0].name == PRODUCT.name else (PRODUCT,)
    (line,) = headline(difference(of(*(before or (PRODUCT,)), *rest[: len(before)]), of(*rest, *after)))
    assert line == f"What costs most: {expected}"


def test_a_larger_change_of_a_time_alone_comes_second() -> None:
    """A time of one profile may be chance, a further call isn't."""
    slow = dataclasses.replace(PRODUCT, self_s=12e-3)
    certain, uncertain = headline(difference(of(PRODUCT), of(slow, COPY)))
    assert certain.startswith("What costs most: aten::copy_ appeared")
    assert uncertain == "More, but by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."
    (alone,) = headline(difference(of(PRODUCT), of(slow)))
    assert alone == "What costs most, by its time alone: aten::mm grew by time in 2 calls, +4.00 ms."


def test_a_row_says_what_became_of_an_operator_on_both_sides() -> None:
    """Largest change first, what stayed in one row, and all together at the end."""
    lines = shown(of(PRODUCT, Operator("aten::add", 1, 1e-3, 0)), of(PRODUCT, COPY, implementation="sdpa"))
    start = next(number for number, line in enumerate(lines) if line.startswith("operator"))
    assert [" ".join(line.split()) for line in lines[start + 1 : start + 5]] == [
        "aten::add vanished 1 → 0 1.00 ms → 0 -1.00 ms",
        "aten::copy_ appeared 0 → 1 0 → 200 µs +200 µs 0 → 2.25 MiB +2.25 MiB",
        "unchanged 2 8.00 ms 7.00 MiB",
        "all 3 9.00 ms → 8.20 ms -800 µs 7.00 MiB → 9.25 MiB +2.25 MiB",
    ]


def test_small_changes_beyond_the_top_are_counted_together() -> None:
    """With their sums, so that the rows still make the whole."""
    extra = [Operator(f"aten::op{number}", 1, 1e-4 * (number + 1), 0) for number in range(5)]
    lines = shown(of(PRODUCT), of(PRODUCT, *extra), top=2)
    assert [line.split()[0] for line in lines if line.startswith("aten::")] == ["aten::op4", "aten::op3"]
    (rest,) = [line for line in lines if line.startswith("3 smaller changes")]
    assert "+600 µs" in rest


def test_both_sides_are_named_with_what_they_share() -> None:
    """And what differs beside the implementation: a column of the point, the machine."""
    a, b = of(PRODUCT), profile("sdpa", operators=(PRODUCT,), num_tokens=577)
    newer = dataclasses.replace(b, origin=dataclasses.replace(b.origin, torch_version="2.14.0"))
    lines = shown(a, newer)
    assert lines[0] == "vit · float32 · inference · B=8 · C=384 · H=6 · 1 thread"
    assert lines[1] == "A: eager N=197, 8.00 ms a call, 8.16 ms under the profiler"
    assert lines[2] == "B: sdpa N=577, 8.00 ms a call, 8.16 ms under the profiler"
    assert lines[3] == "from A to B: torch 2.13.0 → torch 2.14.0"


def test_kernels_have_a_table_of_their_own() -> None:
    """Only where there are any; and where nothing changed there is no row."""
    with_one = dataclasses.replace(of(PRODUCT), spans=(Span("gemm", KERNEL, "stream 7", 0, 0.0, 1e-3),))
    assert any(line.startswith("GPU kernel") for line in shown(of(PRODUCT), with_one))
    lines = shown(stepwise(), stepwise())
    assert "Nothing appeared, vanished, grew or shrank." in lines
    assert not [line for line in lines if line.startswith(("aten::", "GPU kernel"))]
