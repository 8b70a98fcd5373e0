"""Points, counts, lists and bounds in words."""

import math

import pytest

from bench.plan.case import POINT_COLUMNS, Point
from bench.show.text import (
    LONGEST_NAME,
    counted,
    differences,
    more,
    names,
    parts,
    share_of,
    shared,
    times,
    varying,
)
from tests.make.points import of_layer, vit_s


@pytest.mark.parametrize(
    ("of", "columns", "text"),
    [
        (vit_s(), None, "vit float32 inference B=8 N=197 C=384 H=6 1 thread"),
        (
            vit_s(device="cuda:1", timing="device-hot", allocator="system", qkv_bias=True, token_len=49, threads=4),
            None,
            "vit cuda:1 float32 inference B=8 N=197 C=49→384 H=6 with qkv bias allocator system timing device-hot",
        ),
        (vit_s(threads=4, allocator="system"), ["threads", "allocator"], "4 threads allocator system"),
        (vit_s(device="cuda", timing="host"), ["timing"], "timing host"),
        (vit_s(token_len=49), ["num_tokens", "token_len"], "N=197 C=49→384"),
        (of_layer("patch"), ["image_size", "patch_size"], "images 12×12 patches 4×4"),
        (of_layer("self"), ["key_channels"], "keys C=6"),
        (vit_s(qk_scale=0.25), ["qk_scale"], "qk scale 0.25"),
    ],
)
def test_a_point_is_described_without_what_goes_without_saying(of: Point, columns: list[str] | None, text: str) -> None:
    """The CPU, a retaining allocator, host timing and no bias are not mentioned; unusual values are.

    Threads are said of a CPU, and of a GPU only where they are what differs.

    A selection of columns names those alone, the token length with the channels, images by their sides.
    """
    assert " ".join(parts(of, *([columns] if columns else []))) == text
    assert "" not in parts(of)
    assert differences(vit_s(device="cuda", threads=4), ["threads"]) == "4 threads"


def test_what_differs_and_what_is_shared_is_said() -> None:
    """Where allocators differ, `retained` is news; what points share is the rest; numbers that differ are a range."""
    assert differences(vit_s(), {"allocator", "device", "qkv_bias"}) == "cpu without qkv bias allocator retained"
    assert varying([vit_s(), vit_s(num_heads=3), vit_s(num_heads=1)]) == {"num_heads"}
    assert varying([vit_s()]) == varying([]) == set()
    models = [vit_s(layer="timm:a"), vit_s(layer="my:B[input=1x5]", num_heads=3, num_tokens=5)]
    assert varying(models) == {"layer"}
    assert varying([*models, vit_s()]) == {"layer", "num_heads", "num_tokens"}
    assert shared(models) == "float32 · inference · B=8 · 1 thread"
    assert "N=197" in shared([vit_s(layer="timm:a[at=blocks.0.attn]")])
    assert shared([vit_s(), vit_s(num_heads=3)]) == "vit · float32 · inference · B=8 · N=197 · C=384 · 1 thread"
    texts = [counted(numbers, "process", "processes") for numbers in ([], [1, 1], [3], [5, 2])]
    assert texts == ["", "1 process", "3 processes", "2 to 5 processes"]
    assert [counted(number, "row") for number in (1, 4)] == ["1 row", "4 rows"]
    assert [share_of(number, 3) for number in (2, 3)] == ["2 of 3", "all 3"]


def test_bounds_are_rounded_away_from_what_they_bound() -> None:
    """However a computer stores a number; a number without an end is not written out."""
    assert [more(ratio) for ratio in (1.011, 1.0111, 1.1, 1.101)] == ["1.1%", "1.2%", "10%", "11%"]
    assert (times(1.0201), times(1.0299, up=False)) == ("1.03x", "1.02x")
    assert more(math.inf) == "over 1,000,000%"


def test_a_name_that_is_too_long_loses_columns_without_which_names_still_differ() -> None:
    """The sides of an image follow from the layer here; in a wide table they are there. No name is lost."""
    points = [of_layer("patch", num_tokens=9), of_layer("patch", num_tokens=16), vit_s(num_tokens=9)]
    whole, short = names(points), names(points, LONGEST_NAME)
    assert "images 12×12 patches 4×4" in whole[points[0]]
    assert max(map(len, short.values())) <= LONGEST_NAME
    assert len({*short.values()}) == len(points)
    assert all({*short[each].split()} <= {*whole[each].split()} for each in points)
    assert names(points[:1]) == {points[0]: "the only point"}


def test_the_name_of_a_picture_leaves_out_its_axis() -> None:
    """Other columns stay, and so does a width that doesn't follow from one that is left out."""
    assert vit_s().short_name({"num_tokens"}) == "vit-cpu-float32-inference-b8-c384-h6-t1"
    assert vit_s(token_len=49).short_name({"channels"}) == "vit-cpu-float32-inference-b8-n197-w49-h6-t1"
    assert vit_s().short_name(POINT_COLUMNS) == ""
