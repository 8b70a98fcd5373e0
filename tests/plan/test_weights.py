"""The ways in which weights of one module may be those of another: the right one is among them, and few others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bench.plan.weights import ADDED, MOST_MATCHES, NAMES, ORDER, ROWS, Sources, differing, matches, way_of, words_of

HEADS, WIDTH = 2, 4
"""The heads of the modules, and the width of each: q, k and v have 8 rows each."""

NUMBERS = np.random.default_rng(0)

Q, K, V, OUT = NUMBERS.normal(size=(4, HEADS * WIDTH, HEADS * WIDTH))
BQ, BK, BV, BOUT = NUMBERS.normal(size=(4, HEADS * WIDTH))

Weights = dict[str, Any]

PACKED = {"qkv.weight": np.concatenate([Q, K, V]), "qkv.bias": np.concatenate([BQ, BK, BV])}
SPLIT = {"q.weight": Q, "q.bias": BQ, "k.weight": K, "k.bias": BK, "v.weight": V, "v.bias": BV}
END = {"out.weight": OUT, "out.bias": BOUT}


def shapes(of: Weights) -> list[tuple[str, list[int]]]:
    """Return names and shapes as a worker sends them."""
    return [(name, [*each.shape]) for name, each in of.items()]


def made(sources: Sources, before: Weights) -> dict[str, Any]:
    """Return the weights after that sources make of those before, those with a source alone."""
    rows = {name: each.squeeze() for name, each in before.items()}
    return {
        name: np.concatenate([rows[of][begin:end] for of, begin, end in parts])
        for name, parts in sources.items()
        if parts
    }


def by_head(*parts: Any) -> Any:
    """Return rows `[heads, parts, width]`: those of a head are neighbours."""
    return np.concatenate([part[head * WIDTH : (head + 1) * WIDTH] for head in range(HEADS) for part in parts])


def agreeing(before: Weights, after: Weights, known: Sequence[str]) -> list[Sources]:
    """Return the ways that give the weights after; `known` are those that come from before."""
    ways = matches(shapes(before), shapes(after), [HEADS])
    assert len(ways) <= 2 * MOST_MATCHES
    return [
        way
        for way in ways
        if {*made(way, before)} == {*known}
        and all(np.array_equal(each, after[name].squeeze()) for name, each in made(way, before).items())
    ]


RENAMED = {name.replace("qkv", "to_qkv").replace("out", "proj"): each for name, each in (PACKED | END).items()}
KV = {"q.weight": Q, "q.bias": BQ, "kv.weight": np.concatenate([K, V]), "kv.bias": np.concatenate([BK, BV])}
OTHER_ORDER = {"k.weight": K, "k.bias": BK, "q.weight": Q, "q.bias": BQ, "v.weight": V, "v.bias": BV}
TORCH = {"in_proj_weight": PACKED["qkv.weight"], "in_proj_bias": PACKED["qkv.bias"], **END}
HEADWISE = {"packed.weight": by_head(Q, K, V), "packed.bias": by_head(BQ, BK, BV)}
CONVOLUTION = {name: each[..., None, None] if each.ndim > 1 else each for name, each in RENAMED.items()}


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        (PACKED | END, PACKED | END, NAMES),
        (PACKED | END, END | PACKED, NAMES),
        (PACKED | END, RENAMED, ORDER),
        (PACKED | END, CONVOLUTION, ORDER),
        (TORCH, RENAMED, ORDER),
        (PACKED | END, SPLIT | END, ROWS),
        (SPLIT | END, PACKED | END, ROWS),
        (PACKED | END, OTHER_ORDER | END, ROWS),
        (OTHER_ORDER | END, PACKED | END, ROWS),
        (PACKED | END, KV | END, ROWS),
        (KV | END, SPLIT | END, ROWS),
        (PACKED | END, HEADWISE | END, ROWS),
        (HEADWISE | END, SPLIT | END, ROWS),
        (SPLIT | END, HEADWISE | END, ROWS),
    ],
    ids=lambda of: of if isinstance(of, str) else ",".join(of),
)
def test_the_right_way_is_among_those_that_are_tried(before: Weights, after: Weights, way: str) -> None:
    """Every weight after has its numbers, whatever its name, its packing and its axes of size 1."""
    right = agreeing(before, after, [*after])
    assert right
    assert way_of(right[0]) == way


def test_weights_of_equal_names_have_one_way() -> None:
    """It is that of a state dict, and no guess."""
    assert len(matches(shapes(PACKED | END), shapes(END | PACKED), [HEADS])) == 1


@pytest.mark.parametrize("before", [PACKED, SPLIT], ids=["as before", "packed"])
def test_what_is_new_keeps_its_values(before: Weights) -> None:
    """A scale and a table have no source; all others have theirs, and the words name what is new and what is gone."""
    after = {**PACKED, **END, "scale": BQ, "table": np.zeros((3, 5))}
    right = agreeing(before | END | {"gone": np.zeros(7)}, after, [*PACKED, *END])
    assert way_of(right[0]) == ADDED
    words = "; ".join(words_of(right[0], shapes(before | END | {"gone": np.zeros(7)})))
    assert "scale has its initial values (and 1 like it)" in words
    assert "gone is gone" in words


SWAPPED = {"q.weight": Q, "q.bias": BQ, "v.weight": V, "v.bias": BV, "k.weight": K, "k.bias": BK}


def blocks(of: Weights) -> Weights:
    """Return the weights of two blocks."""
    return {f"blocks.{number}.{name}": each for number in range(2) for name, each in of.items()}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (PACKED, SPLIT, ["q.weight is rows 0 to 7 of qkv.weight, k.weight rows 8 to 15, v.weight rows 16 to 23"]),
        (PACKED, KV, ["q.weight is rows 0 to 7 of qkv.weight, kv.weight rows 8 to 23"]),
        (SPLIT, PACKED, ["qkv.weight is q.weight, k.weight, v.weight"]),
        (PACKED, HEADWISE,
            ["packed.weight is rows 0 to 3, 8 to 11, 16 to 19, 4 to 7, 12 to 15, 20 to 23 of qkv.weight"]),
        (blocks(PACKED), blocks(KV),
            ["blocks.0.q.weight is rows 0 to 7 of blocks.0.qkv.weight, blocks.0.kv.weight rows 8 to 23 "
             "(and 1 like it)"]),
    ],
    ids=lambda of: ",".join(of)[:30],
)  # fmt: skip
def test_words_have_the_rows_of_each_weight(before: Weights, after: Weights, words: list[str]) -> None:
    """In the order of the rows; neither a bias like its weight nor weights of the same name are listed."""
    assert words_of(agreeing(before | END, after | END, [*after, *END])[0], shapes(before | END)) == words


def test_words_show_that_two_were_swapped() -> None:
    """Keys and values in the place of each other: as rows of a packed weight, and as weights of other names."""
    ways = [words_of(way, shapes(PACKED)) for way in matches(shapes(PACKED), shapes(SWAPPED), [HEADS])]
    assert ["q.weight is rows 0 to 7 of qkv.weight, v.weight rows 8 to 15, k.weight rows 16 to 23"] in ways
    moved = {"to_q": "q", "to_v": "k", "to_k": "v"}
    way = {f"{name}.{kind}": [(f"{of}.{kind}", 0, 8)] for name, of in moved.items() for kind in ("weight", "bias")}
    assert words_of(way, shapes(SPLIT)) == [
        "to_q.weight is q.weight",
        "to_v.weight is k.weight",
        "to_k.weight is v.weight",
    ]


def test_weights_that_one_side_alone_has_are_named() -> None:
    """A few of each side."""
    said = differing(shapes(PACKED | END), shapes(SPLIT | END))
    assert "only before qkv.weight, qkv.bias" in said
    assert "only after q.weight, q.bias, k.weight, …" in said
    assert way_of(None) == ""
