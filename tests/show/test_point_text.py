"""Points in words."""

import pytest

from bench.plan.case import POINT_COLUMNS
from bench.plan.sweep import load_sweep
from bench.show.point_text import counted, differences, parts, shared, varying
from tests.examples import point
from tests.points import of_layer


def test_a_point_is_described_without_what_goes_without_saying() -> None:
    """The CPU, a retaining allocator, host timing and no bias are not mentioned."""
    assert " ".join(parts(point())) == "vit float32 inference B=8 N=197 C=384 H=6 1 thread"


def test_whatever_is_unusual_is_said() -> None:
    """Another device, allocator, timing, bias and a width that changes are part of the description."""
    unusual = point(device="cuda:1", timing="device-hot", allocator="system", qkv_bias=True, token_len=49, threads=4)
    said = "vit cuda:1 float32 inference B=8 N=197 C=49→384 H=6 with qkv bias 4 threads"
    assert " ".join(parts(unusual)) == f"{said} allocator system timing device-hot"


def test_layers_of_images_say_their_sides() -> None:
    """Images and patches are said with the tokens that they make, narrower keys and a scale of one's own too."""
    assert parts(of_layer("patch"), ["image_size", "patch_size"]) == ["images 12×12", "patches 4×4"]
    assert parts(of_layer("self"), ["key_channels"]) == ["keys C=6"]
    assert parts(point(qk_scale=0.25), ["qk_scale"]) == ["qk scale 0.25"]
    assert parts(of_layer("conv")).count("") == 0


def test_host_timing_of_a_gpu_is_said() -> None:
    """Wall time is the only way to time a CPU, but one of several on a GPU."""
    assert "timing host" in parts(point(device="cuda", timing="host"))


def test_only_columns_that_are_asked_for_are_said() -> None:
    """A selection of columns names those alone, the token length with the channels."""
    assert parts(point(token_len=49), ["num_tokens", "token_len"]) == ["N=197", "C=49→384"]


def test_a_difference_is_said_even_where_the_value_is_usual() -> None:
    """Where allocators differ, `retained` is news."""
    assert differences(point(), {"allocator", "device", "qkv_bias"}) == "cpu without qkv bias allocator retained"


def test_what_varies_is_found() -> None:
    """The columns in which points differ are those that are not all the same."""
    assert varying([point(), point(num_heads=3), point(num_heads=1)]) == {"num_heads"}


def test_what_points_share_is_said_once() -> None:
    """The columns in which they differ are left out."""
    assert shared([point(), point(num_heads=3)]) == "vit · float32 · inference · B=8 · N=197 · C=384 · 1 thread"


def test_nothing_varies_in_a_single_point_or_none() -> None:
    """One point differs from nothing."""
    assert varying([point()]) == set()
    assert varying([]) == set()


def test_file_names_of_different_points_differ() -> None:
    """The points of the widest sweep have names of their own, in characters that every file system takes."""
    points = [*load_sweep("full").points, point(device="cuda:0", timing="host"), point(threads=2), point(qkv_bias=True)]
    points += [*load_sweep("layers").points, point(qk_scale=0.25)]
    names = {each.name for each in points}
    assert len(names) == len(set(points))
    assert all(character.isalnum() or character in "-_." for name in names for character in name)


def test_a_file_name_leaves_out_what_its_picture_shows() -> None:
    """The columns of an axis have no place in the name of its picture."""
    assert point().short_name({"num_tokens"}) == "vit-cpu-float32-inference-b8-c384-h6-t1"
    assert point(token_len=49).short_name({"channels"}) == "vit-cpu-float32-inference-b8-n197-w49-h6-t1"
    assert point().short_name(POINT_COLUMNS) == ""


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([1, 1], "1 process"), ([3], "3 processes"), ([5, 2], "2 to 5 processes")]
)
def test_a_number_that_varies_is_counted_as_a_range(numbers: list[int], text: str) -> None:
    """Equal counts are one number, different ones a range."""
    assert counted(numbers, "process", "processes") == text
