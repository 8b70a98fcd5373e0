"""What attention is worth in a model, predicted and measured."""

import dataclasses
import math

import pytest

from bench.analyse import advice
from bench.analyse.advice import Advice
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.stats.estimates import Interval, mean
from tests.make import records, rows
from tests.make.advice import POINT, advised, core, looks, seen
from tests.make.records import case, record


def test_the_bound_is_amdahls() -> None:
    """A share of a fifth leaves 1.25x, over processes, or over the calls of one; below 1.1x the command stops."""
    answer = advice.seen(POINT, looks(core_share=0.2))
    assert answer.bound.value == pytest.approx(1.25, rel=0.02)
    assert answer.share.low < 0.2 < answer.share.high
    assert advice.seen(POINT, looks()[:1]).share.is_known
    assert (answer.is_little, advice.seen(POINT, looks(core_share=0.05)).is_little) == (False, True)


def test_a_layer_that_is_one_operator_counts_as_a_whole() -> None:
    """A setting replaces its projections too."""
    cores = [core("a", operator="_native_multi_head_attention", by_sdpa=False)]
    answer = advice.seen(POINT, [seen(cores, 0.1, 0.5, number=number) for number in range(3)])
    assert (answer.bound.value, answer.core_share.value) == pytest.approx((2, 0.1), rel=0.05)


def test_a_core_that_no_setting_reaches_has_the_gain_of_a_fused_one() -> None:
    """Half of its time, which is a fifth of the model's, makes the model 1 / 0.9 times as fast.

    Nothing is known of it if a core has no line by SDPA, or if another process found none.
    """
    times = {"blocks.0.attn": [[2.0, 1.0], [4.0, 2.0], [2.2, 1.1]]}
    written = core("blocks.0.attn", operator="unfused", by_sdpa=False, proposal=["o = F(q)"], lines="model.py:3-5")
    at = [seen([written], 0.2, 0.4, number=number, settings={}, written=times) for number in range(3)]
    assert advice.seen(POINT, at).rewritten.value == pytest.approx(1 / 0.9, rel=0.01)
    talking = [{**each, "cores": [{**written, "proposal": []}], "written": {}} for each in at]
    for other in (talking, [*at[:2], {**at[2], "written": {}}]):
        assert not advice.seen(POINT, other).rewritten.is_known


def test_layers_that_are_alike_are_one_kind() -> None:
    """Those with another shape or mask are another, and the longest comes first."""
    kinds = advice.kinds([seen([core("a"), core("b"), core("c", mask="float32 [7, 7]")], 0.2, 0.3)])
    assert [(kind.path, kind.count) for kind in kinds] == [("a", 2), ("c", 1)]
    assert kinds[0].share == pytest.approx(0.2, rel=0.05)


def test_the_largest_kinds_are_measured() -> None:
    """Until they have nine tenths of the time; none if the core is in the model itself."""
    shares = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}
    kinds = [advice.LayerKind(path, 1, {}, mean([share])) for path, share in shares.items()]
    assert [kind.path for kind in advice.measured_kinds(kinds)] == ["a", "b", "c"]
    assert advice.measured_kinds([advice.LayerKind("", 1, {}, mean([0.5]))]) == []


def test_a_difference_between_observed_and_plain_is_an_objection() -> None:
    """It names the kernels; and a switch of the model that no setting changes is named."""
    (objection,) = advice.seen(POINT, looks(observed_kernels=["product", "softmax"])).objections
    assert "product, softmax in place of" in objection
    (objection,) = advice.seen(POINT, looks(flags=["Block.use_flash_attention = False"])).objections
    assert objection.startswith("Block.use_flash_attention = False is a switch")


def test_a_gain_is_predicted_from_share_and_layer() -> None:
    """Layers with 40 % of the time that become twice as fast make the model 1.25 times as fast."""
    kinds = advice.kinds(looks(layer_share=0.4))
    gains = {"blocks.0.attn": {"eager": mean([math.log(2) + step for step in (-0.01, 0.0, 0.01)])}}
    gain = advice.predicted(kinds, gains, "eager")
    assert gain.value == pytest.approx(1.25, rel=0.02)
    assert gain.low < 1.25 < gain.high
    assert not advice.predicted(kinds, gains, "other").is_known


def test_layers_that_were_not_measured_widen_the_prediction() -> None:
    """They may gain nothing, or as much as the others: four kinds with 10 % each, of which three are halved."""
    cores = [core(f"blocks.{number}.attn", shapes=[[2, 3, 7 + number, 4]] * 3) for number in range(4)]
    kinds = advice.kinds([seen(cores, 0.2, 0.4, number=number) for number in range(3)])
    halved = {"sdpa": mean([math.log(2) + step for step in (-0.001, 0.0, 0.001)])}
    gain = advice.predicted(kinds, {each["layer"]: halved for each in cores}, "sdpa")
    assert gain.value == pytest.approx(1 / (1 - 0.15 - 0.025), rel=0.02)
    assert gain.low < 1 / (1 - 0.15) * 1.01
    assert gain.high > 1 / (1 - 0.20) * 0.99


def answer(**times_s: float) -> Advice:
    """Return the answer for settings that take these times; the model as it is takes a second."""
    return advised({"as_is": 1.0, **times_s})


def test_a_layer_that_fails_is_why_nothing_is_predicted() -> None:
    """The setting that failed in it has the reason, and all have that of the layer as it is."""
    failed = rows.table(rows.row(case("as_is"), [0.0]), rows.failed(case("eager"), "unsupported", "no mask"))
    records = advised({"as_is": 1.0, "eager": 0.8})
    of = advice.advised(records, looks(), summarise([], "as_is"), [], {"blocks.0.attn": failed}, ["eager", "sdpa"])
    by_name = {each.name: each.unpredicted for each in of.alternatives}
    assert by_name == {"eager": "blocks.0.attn is unsupported: no mask", "sdpa": ""}


def test_points_are_compared_for_each_item() -> None:
    """In other rounds by their latencies, and in the same rounds by these: half precision takes 0.8 times as long."""
    half, large = dataclasses.replace(POINT, dtype="bfloat16"), dataclasses.replace(POINT, batch=4)
    times = {POINT: 1.0, half: 0.8, large: 3.0}
    measured = [
        records.measured(Case(point, "as_is"), process, time_s)
        for point, time_s in times.items()
        for process in range(4)
    ]
    table = summarise(measured, "as_is").to_dict("records")
    answers = [dataclasses.replace(answer(), point=point, chosen=row) for point, row in zip(times, table, strict=True)]
    first, second, third = advice.per_item(answers, measured)
    assert [each.point for each in (first, second, third)] == [half, POINT, large]
    assert first.item_s == pytest.approx(0.4, rel=0.02)
    assert (second.behind.value, third.behind.value) == pytest.approx((1.25, 1.875), rel=0.02)
    assert second.behind.low > 1.2
    assert advice.per_item([], []) == []


def test_what_is_shown_to_be_faster_is_recommended() -> None:
    """The fastest of them."""
    of = answer(eager=0.8, compiled=0.7, compiled_eager=1.2)
    assert of.recommendation == "compiled"
    by_name = {each.name: each for each in of.alternatives}
    assert by_name["eager"].speedup.value == pytest.approx(1.25, rel=0.02)
    assert 1 < by_name["compiled"].slowdown_high + 0.01 < 0.8 / 0.7 < by_name["eager"].slowdown_high


@pytest.mark.parametrize("time_s", [1.0, 1.3])
def test_what_is_the_same_or_slower_is_not(time_s: float) -> None:
    """Then there is no recommendation, and what it can cost to stay is known; what was not measured has its reason."""
    of = answer(eager=time_s)
    assert (of.recommendation, of.processes) == (None, 8)
    assert 1 <= of.as_is["slowdown_high"] < 1.1
    by_name = {each.name: (each.status, each.detail) for each in of.alternatives}
    assert (by_name["sdpa"], by_name["sdpa_flash"]) == (("same", ""), ("unsupported", "no kernel"))


def test_intervals_that_do_not_meet_disagree() -> None:
    """A prediction and a measurement, each with its own."""
    for measured, is_other in ((Interval(1.3, 1.25, 1.35), True), (Interval(1.1, 1.05, 1.15), False)):
        row = advice.Alternative("eager", "ok", speedup=measured, predicted=Interval(1.1, 1.06, 1.14))
        assert advice.disagrees(row) is is_other


def test_a_run_without_the_model_as_it_is_has_no_answer() -> None:
    """Nothing can be compared with a baseline that had no memory."""
    row = record(case=Case(POINT, "as_is"), status="oom", detail="no memory")
    of = advice.advised(advice.seen(POINT, looks()), looks(), summarise([row], "as_is"), [row], {}, ["eager"])
    assert (of.recommendation, of.as_is["status"]) == (None, "oom")
