"""The difference of two profiles that were really taken."""

from bench.analyse.profile import GREW, UNCHANGED, difference
from bench.plan.case import Case, Point
from bench.profiling.operators import operators
from bench.profiling.spans import spans
from bench.show.terminal.profile_difference import words
from bench.store.profile import Profile
from tests.examples import ORIGIN
from tests.points import point
from tests.profiling.taken import captured

AT = point(batch=2, num_tokens=64, channels=32, num_heads=4)
COPIED_BYTES = 2 * 64 * 32 * 4
"""Of the output of all heads."""


def profile(at: Point, implementation: str) -> Profile:
    """Return the profile of a case."""
    taken = captured(at, implementation)
    return Profile(
        case=Case(at, implementation),
        origin=ORIGIN,
        calls=len(taken.middle_half),
        timed_s=taken.timed_s,
        profiled_s=taken.profiled_s,
        operators=operators(taken.middle_half, at.device),
        spans=spans(taken.median.call),
    )


def test_an_extra_copy_is_named() -> None:
    """Of two implementations that differ in one clone, the copy is named with its caller and its bytes."""
    changes = difference(profile(AT, "tests.foreign:twin"), profile(AT, "tests.foreign:copying"))
    found = {change.name: change for change in changes if change.is_certain}
    copy, clone = found["aten::copy_"], found["aten::clone"]
    assert copy.after.calls - copy.before.calls == 1
    assert (copy.became, copy.callers) == (GREW, (("aten::clone",),))
    assert clone.allocated_bytes == COPIED_BYTES
    assert {"aten::mm", "aten::bmm", "aten::_softmax"} & set(found) == set()
    assert words(copy, changes).endswith("in aten::clone with +16.0 KiB")


def test_a_case_against_itself_changed_in_nothing_but_time() -> None:
    """Calls and bytes are exact, and callers are named only where they changed."""
    one = profile(AT, "tests.foreign:twin")
    assert all(change.became == UNCHANGED for change in difference(one, one))
    again = difference(one, profile(AT, "eager"))
    assert not [change.name for change in again if change.is_certain]
