"""An answer as JSON."""

import json

from bench.show.advice.data import as_json
from tests.advice import advised

CONTRACT = {
    *("name", "status", "speedup", "speedup_low", "speedup_high"),
    *("predicted", "predicted_low", "predicted_high", "kernels"),
}


def test_the_keys_are_a_contract() -> None:
    """One object; a number that isn't known is null."""
    content = json.loads(as_json([advised({"as_is": 1.0, "eager": 0.8})]))
    assert {"model", "share", "bound", "alternatives", "recommendation"} <= {*content}
    assert content["model"] == "timm:vit_tiny_patch16_224"
    assert content["recommendation"] == "eager"
    by_name = {each["name"]: each for each in content["alternatives"]}
    assert all({*each} >= CONTRACT for each in by_name.values())
    assert by_name["sdpa"]["speedup"] is None
    assert by_name["eager"]["speedup_low"] > 1


def test_no_recommendation_is_null() -> None:
    """And several points stand beside the first."""
    one = advised({"as_is": 1.0, "eager": 1.5})
    content = json.loads(as_json([one, one]))
    assert content["recommendation"] is None
    assert len(content["points"]) == 2
