"""The best rates of devices are kept by environment and only raised; a rate above them is impossible or in doubt."""

from pathlib import Path

import pytest

from bench.machine import rates
from bench.machine.rates import BEYOND, POSSIBLE, counted, is_possible, judge
from bench.plan.device import CPU
from bench.plan.layers import flops, least_bytes
from bench.plan.work import Roof, Work
from tests.make.points import point

AT = point()
SLOW, FAST = {"products_per_s": 1e9, "copies_per_s": 5e9}, {"products_per_s": 2e9, "copies_per_s": 4e9}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which rates are kept."""
    file = tmp_path / "results" / "ceilings.json"
    monkeypatch.setattr(rates, "PATH", file)
    return file


@pytest.mark.usefixtures("path")
def test_rates_are_kept_by_environment_device_dtype_and_threads() -> None:
    """A rate of one thread says nothing about two, or about another environment."""
    assert rates.recall("here", AT) is None
    rates.remember("here", AT, SLOW)
    assert rates.recall("here", AT) == SLOW
    assert rates.recall("here", point(num_tokens=99)) == SLOW
    for other in (point(threads=2), point(dtype="bfloat16"), point(device="cuda", timing="device-hot")):
        assert rates.recall("here", other) is None
    assert rates.recall("there", AT) is None


def test_a_rate_is_only_raised(path: Path) -> None:
    """Each of the two keeps its best, and what is no better isn't written."""
    rates.remember("here", AT, SLOW)
    rates.remember("here", AT, FAST)
    assert rates.recall("here", AT) == {"products_per_s": 2e9, "copies_per_s": 5e9}
    path.chmod(0o400)
    before = path.stat().st_mtime_ns
    rates.remember("here", AT, SLOW)
    rates.remember("here", AT, {})
    assert path.stat().st_mtime_ns == before
    assert {file.name for file in path.parent.iterdir()} == {path.name, ".gitignore"}


@pytest.mark.parametrize("content", ["", "[]", '{"here": 1}', '{"here": {"cpu float32 1": 1}}', "{"])
def test_a_file_that_is_none_is_as_good_as_no_file(path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be read is taken again, and overwritten; in a folder that can't be written nothing is kept or said."""
    path.parent.mkdir()
    path.write_text(content)
    assert rates.recall("here", AT) is None
    rates.remember("here", AT, SLOW)
    assert rates.recall("here", AT) == SLOW
    monkeypatch.setattr(rates, "PATH", path / "ceilings.json")
    rates.remember("here", AT, SLOW)
    assert rates.recall("here", AT) is None


HERE = point(num_tokens=64, channels=64, num_heads=4)
LARGE = point(batch=4096, num_tokens=64, channels=64, num_heads=4)
BEST = Roof(flops_per_s=1e9, bytes_per_s=1e9)
WORK = Work(10**6, 0)
WORK_S = 1e-3
"""The time of that work at the best rate."""


def times(factor: float) -> Roof:
    """Return so many times the best rates."""
    return Roof(factor * BEST.flops_per_s, factor * BEST.bytes_per_s)


def test_a_rate_within_the_margin_is_possible() -> None:
    """A layer's own shapes may be a little better than those of the product."""
    assert is_possible(WORK, WORK_S / (0.99 * POSSIBLE), BEST)
    assert not is_possible(WORK, WORK_S / (1.01 * POSSIBLE), BEST)


@pytest.mark.parametrize(
    ("excess", "reached", "others", "best", "kind"),
    [
        (2.0, 1.0, 0.0, 1.0, "objection"),  # on a quiet machine
        (3.0, 3.0, 0.0, 3.0, ""),  # the best came from a slow machine, and is raised
        (1.0, 0.5, 0.0, 1.0, ""),  # a time that can't be repeated proves nothing, and lowers nothing
        (2.0, 0.5, 0.0, 1.0, "doubt"),  # products are slower than before
        (2.0, 1.0, 0.9, 1.0, "doubt"),  # other processes are at work
        (2.0, 0.1, 13.0, 1.0, "doubt"),
        (1.1 * BEYOND, 1.0, 0.0, 1.0, "objection"),
        (1.1 * BEYOND, 0.1, 13.0, 1.0, "objection"),  # no load explains it
    ],
)
def test_a_time_that_was_taken_again_is_judged(
    excess: float, reached: float, others: float, best: float, kind: str
) -> None:
    """A call that takes `excess` times less than its work does at the best rates, of which products reach so many.

    The objection names both rates. A busy machine is no fault of the case: its time is kept with a doubt.
    """
    judgement = judge(WORK, WORK_S / excess, BEST, times(reached), others)
    assert judgement.best == times(best)
    assert ("impossible rate" in judgement.objection) is (kind == "objection")
    assert ("perhaps an impossible rate" in judgement.doubt) is (kind == "doubt")
    assert (judgement.objection + judgement.doubt == "") is (kind == "")
    if excess == 2.0:
        assert "would be 2.00 GFLOP/s; a matrix product reaches 1.00 GFLOP/s" in judgement.objection + judgement.doubt


def test_more_bytes_than_a_copy_moves_are_impossible() -> None:
    """A call that is too large for a cache is compared with the copy too."""
    best, work = Roof(1e15, 1e9), counted(LARGE, Work(flops(LARGE), least_bytes(LARGE)))
    call_s = least_bytes(LARGE) / 2e9
    assert not is_possible(work, call_s, best)
    objection = judge(work, call_s, best, best, 0.0).objection
    assert "would be 2.00 GB/s; a copy reaches 1.00 GB/s" in objection


def test_a_small_call_is_not_compared_with_the_copy() -> None:
    """What fits into a cache may move faster than memory; a GPU's cache is another one.

    A layer whose operations are unknown is not compared with a product.
    """
    small, larger = Work(flops(HERE), least_bytes(HERE)), Work(10, CPU.copied_bytes + 1)
    assert counted(HERE, small) == Work(flops(HERE), 0)
    assert counted(HERE, larger) == larger
    assert counted(point(device="cuda:0"), larger) == Work(10, 0)
    assert is_possible(counted(HERE, Work(None, least_bytes(HERE))), 1e-9, BEST)
