"""Sweep files: their contents and refusals."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Effort, Request, Sweep, load_sweep, shipped_names
from impls.catalogue import IMPLEMENTATIONS as IMPLEMENTATIONS_OF
from tests.make.points import vit_s
from tests.refusals import refusal as refusal_of

EAGER = 'implementations = ["eager"]\n'
GRID = "[[grid]]\nnum_tokens = 10\nchannels = 12\n"

Shape = tuple[int, int, int, int, int]
"""batch, num_tokens, token_len, channels, num_heads"""


def load(folder: Path, text: str | bytes, **options: Any) -> Sweep:
    """Write a sweep file and load it."""
    file = folder / "mine.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_sweep(Request(str(file), **options))


def toml(values: dict[str, Any]) -> str:
    """Return the lines of these keys in a sweep file."""
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def shapes(sweep: Sweep) -> list[Shape]:
    """Return the shapes of a sweep's points."""
    return [(p.batch, p.num_tokens, p.token_len, p.channels, p.num_heads) for p in sweep.points]


# The contents of a file


def test_a_small_file(tmp_path: Path) -> None:
    """A file with implementations and one grid is a sweep of its name, the rest by default; its ending is free."""
    assert load(tmp_path, EAGER + GRID) == Sweep(
        name="mine",
        points=(vit_s(num_tokens=10, token_len=12, channels=12, num_heads=1),),
        implementations=("eager",),
        baseline="eager",
        effort=Effort(race=True),
        control=True,
    )
    assert load_sweep(str((tmp_path / "mine.toml").rename(tmp_path / "mine.sweep"))).name == "mine"


def test_a_full_file(tmp_path: Path) -> None:
    """Everything that a file can say arrives where it belongs."""
    columns = {
        "device": "cuda:1", "dtype": "bfloat16", "mode": "train", "batch": 2, "qkv_bias": True, "threads": 3,
        "allocator": "system", "timing": "device-hot",
    }  # fmt: skip
    shape = {"num_tokens": 10, "token_len": 7, "channels": 12, "num_heads": 4}
    effort: dict[str, Any] = {
        "processes": 5, "budget_s": 30, "race": True, "bound": 0.05, "within_s": 90, "timeout_s": 60.5,
        "oversubscribe": True,
    }  # fmt: skip
    head = {"implementations": ["sdpa", "users.kernel:adapt"], "baseline": "manual", "control": False, **effort}
    text = f"{toml(head)}\n[defaults]\n{toml(columns)}\n[[grid]]\n{toml(shape)}"

    assert load(tmp_path, text) == Sweep(
        name="mine",
        points=(vit_s(**columns, **shape),),
        implementations=("manual", "sdpa", "users.kernel:adapt"),
        baseline="manual",
        effort=Effort(**effort),
    )


@pytest.mark.parametrize(
    ("rest", "shapes"),
    [
        ("[[grid]]\nnum_tokens = [30, 10]\n[[grid]]\nnum_tokens = [20, 10, 5, 5]", [(30, 8), (10, 8), (20, 8), (5, 8)]),
        (
            "batch = [2, 3]\n[[grid]]\nnum_tokens = 10\nbatch = 5\n[[grid]]\nnum_tokens = 20",
            [(10, 5), (20, 2), (20, 3)],
        ),
    ],
)
def test_grids_follow_each_other_without_repeats(tmp_path: Path, rest: str, shapes: list[tuple[int, int]]) -> None:
    """Points are in the order of the file, a repeated one at its first place; a grid replaces a default for itself."""
    points = load(tmp_path, f"{EAGER}[defaults]\nchannels = 12\n{rest}").points
    assert [(point.num_tokens, point.batch) for point in points] == shapes


@pytest.mark.parametrize(
    ("head", "end", "baseline", "expected"),
    [
        ('["sdpa"]', "", "eager", ("eager", "sdpa")),
        ('["sdpa", "eager"]', "", "eager", ("sdpa", "eager")),
        ('["sdpa"]\nbaseline = "manual"', "", "manual", ("manual", "sdpa")),
        ('["sdpa"]', 'layer = "package.module:Layer"', "as_is", ("as_is", "sdpa")),
        ('["sdpa"]', 'layer = ["vit", "package.module:Layer"]', "as_is", ("as_is", "sdpa")),
        ('["sdpa"]\nbaseline = "eager"', 'layer = "package.module:Layer"', "eager", ("eager", "sdpa")),
    ],
)
def test_the_baseline_is_always_measured(
    head: str, end: str, baseline: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    """Implementations stand once each in the order of the file, the baseline first where the file leaves it out.

    That of a module that isn't ours is the module as it is, unless the file names another one. The planned cases are
    the first point's cases, then the next one's.
    """
    sweep = load(tmp_path, f"implementations = {head}\n{GRID}{end}".replace("= 10", "= [10, 20]"))
    assert (sweep.baseline, sweep.implementations) == (baseline, expected)
    assert list(sweep.cases()) == [Case(planned, name) for planned in sweep.points for name in expected]


@pytest.mark.parametrize(
    ("head", "given", "race", "within_s"),
    [
        ("", {}, True, None),
        ("within_s = 60\n", {}, True, 60),
        ("", {"race": False}, False, None),
        ("within_s = 60\n", {"race": False}, False, None),
        ("within_s = 60\n", {"within_s": 5.0}, True, 5),
    ],
)
def test_a_sweep_is_a_race_unless_it_says_no(
    tmp_path: Path, head: str, given: dict[str, Any], race: bool, within_s: float | None
) -> None:
    """A file and the command line may end the race; the latter takes the file's `within_s` with it."""
    effort = load(tmp_path, head + EAGER + GRID, effort=given).effort
    assert (effort.race, effort.within_s) == (race, within_s)


# Values that a caller may replace


def test_what_a_caller_gives_replaces_what_the_file_says(tmp_path: Path) -> None:
    """Overrides replace defaults and grids, and equal points are one; threads are the machine's if the file is silent.

    Implementations replace the file's, except the baseline; an effort replaces the file's key by key.
    """
    text = EAGER + "[defaults]\nbatch = 3\n" + GRID + GRID.replace("10", "[20, 30]")
    points = load(tmp_path, text, overrides={"num_tokens": [40], "batch": [1, 2]}, threads=7).points
    assert [(p.num_tokens, p.batch, p.threads) for p in points] == [(40, 1, 7), (40, 2, 7)]
    assert load(tmp_path, EAGER + GRID + "threads = 2\n", threads=7).points[0].threads == 2
    given = ("sdpa", "users.kernel:adapt")
    for head in (EAGER, ""):
        assert load(tmp_path, head + GRID, implementations=given).implementations == ("eager", *given)
    text = "processes = 5\nbound = 0.5\nbudget_s = 7\n" + EAGER + GRID
    effort = load(tmp_path, text, effort={"budget_s": 1.0}).effort
    assert effort == Effort(processes=5, race=True, bound=0.5, budget_s=1.0)


def test_a_sweep_has_a_control_unless_it_says_no(tmp_path: Path) -> None:
    """The control is measured after the implementations, isn't one of them, and runs the baseline."""
    sweep = load(tmp_path, 'implementations = ["eager", "sdpa"]\nbaseline = "sdpa"\n' + GRID)
    assert sweep.implementations == ("eager", "sdpa")
    assert sweep.measured == ("eager", "sdpa", CONTROL)
    assert [sweep.computed_by(name) for name in sweep.measured] == ["eager", "sdpa", "sdpa"]
    for without in (load(tmp_path, "control = false\n" + EAGER + GRID), load(tmp_path, EAGER + GRID, control=False)):
        assert without.measured == ("eager",)
    assert load(tmp_path, "control = false\n" + EAGER + GRID, control=True).measured == ("eager", CONTROL)
    assert dataclasses.replace(sweep, implementations=("eager",)).measured == ("eager",)  # it has no baseline


# What is refused


def lines_of(folder: Path, text: str | bytes, **options: Any) -> list[str]:
    """Return the lines that refuse a file, without its name, which each begins with."""
    lines = refusal_of(load, folder, text, **options).splitlines()
    assert all(line.startswith("mine.toml: ") for line in lines)
    return [line.removeprefix("mine.toml: ") for line in lines]


@pytest.mark.parametrize(
    ("text", "refusals"),
    [
        ("", ["the sweep is empty; it must have at least one"]),
        (EAGER + "[grid]\nchannels = 8\n", ["grid must be written as [[grid]]"]),
        (EAGER + "defaults = 3\n" + GRID, ["defaults must be written as a table"]),
        ("processs = 3\n" + GRID, ["unknown key 'processs'; expected one of implementations, "]),
        (EAGER + GRID + "num_head = 3\n", ["unknown key 'num_head'; expected one of layer, "]),
        (GRID, ["implementations is missing; expected a list of names in `"]),
        ('implementations = "eager"\n' + GRID, ["implementations = 'eager' must be a list of at least one name"]),
        ('implementations = ["control"]\n' + GRID, ["unknown implementation 'control'; "]),
        ('implementations = ["sdpa", "sdpa"]\n' + GRID, ["implementation 'sdpa' is named twice"]),
        (EAGER + 'baseline = ["eager"]\n' + GRID, ["unknown implementation ['eager']; "]),
        (f"control = 1\n{EAGER}{GRID}", ["control = 1 must be true or false"]),
        ("race = false\nwithin_s = 60\n" + EAGER + GRID, ["within_s needs a race; without one budget_s "]),
        (
            'processes = 0\nimplementations = ["sdap", "onlin"]\n' + GRID + 'dtype = "fp32"\nallocator = "foo"\n',
            [
                "unknown implementations 'sdap', 'onlin'; ",
                "dtype = 'fp32' must be one of float32, ",
                "allocator = 'foo' must be one of retained, ",
                "processes = 0 must be a whole number",
            ],
        ),
        (EAGER + "[[grid]]\nbatch = '1:200'\nchannels = '1:200'\nnum_tokens = 5", ["the grid has 40,000 points; a "]),
        ("[[grid]\n", ["must be valid TOML: "]),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str | bytes, refusals: list[str]) -> None:
    """Each mistake is a line: the file, the key, the value, and the rule."""
    lines = lines_of(tmp_path, text)
    assert len(lines) == len(refusals)
    assert all(line.startswith(words) for line, words in zip(lines, refusals, strict=True))


def test_a_layer_that_cannot_have_the_columns_of_a_product_is_left_out() -> None:
    """It is told; if none can, the request is refused with a line for each, and a file's grids are refused anyway."""
    said: list[str] = []
    columns = {"layer": ["vit", "self"], "key_channels": [64]}
    sweep = load_sweep(Request("quick", overrides=columns, product=True, say=said.append))
    assert {point.layer for point in sweep.points} == {"self"}
    assert said == ["left out: key_channels = 64 is not used by the layer vit; leave it out"]
    none = Request("quick", overrides={"layer": ["vit", "core"], "key_channels": [64]}, product=True)
    assert len(refusal_of(load_sweep, none).splitlines()) == 2


# How options and grids combine


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"batch": [1, 2], "num_heads": [3, 6]}, [(b, 197, 384, 384, h) for b in (1, 2) for h in (3, 6)]),
        ({"model": ["deit_ti_16_224", "vit_b_16_384"]}, [(8, 197, 192, 192, 3), (8, 577, 768, 768, 12)]),
        ({"layer": ["vit", "self"]}, [(8, 197, 384, 384, 6), (8, 197, 384, 384, 1)]),
        ({"layer": ["vit", "package.module:Layer"]}, [(8, 197, 384, 384, 6)] * 2),
        ({"layer": ["package.module:Layer[dim=64,heads=4]"]}, [(8, 197, 64, 64, 4)]),
        ({"layer": ["conv"], "image_size": [14], "channels": [64]}, [(8, 196, 64, 64, 1)]),
        ({"num_tokens": ["64:256:x2"]}, [(8, tokens, 384, 384, 6) for tokens in (64, 128, 256)]),
    ],
)
def test_a_product_takes_what_it_leaves_out_from_the_defaults(overrides: dict[str, Any], expected: list[Shape]) -> None:
    """Missing columns have quick's defaults, except those that a layer fixes or a model gives."""
    assert shapes(load_sweep(Request("quick", overrides=overrides, product=True))) == expected


MODULE = "package.module:Layer[dim=64,heads=4]"


def test_the_default_sweep_of_a_module_replaces_its_core() -> None:
    """Implementations of whole layers of the suite are left out, the module as it is and compiled are there."""
    ours = load_sweep("quick").implementations
    request = Request("quick", overrides={"layer": [MODULE]}, product=True)
    sweep = load_sweep(request)
    cores = [name for name in ours if not IMPLEMENTATIONS_OF[name].layers]
    assert (sweep.baseline, sweep.implementations) == ("as_is", ("as_is", *cores, "compiled"))
    assert set(ours) - set(cores) == {"mha"}
    assert load_sweep(dataclasses.replace(request, baseline="sdpa")).baseline == "sdpa"
    assert load_sweep(Request("quick", overrides={"layer": ["vit"]}, product=True)).implementations == ours


def test_what_only_a_module_knows_is_asked_of_it(tmp_path: Path) -> None:
    """Once, and of no other layer; columns in a name are known before."""
    asked: list[list[str]] = []

    def look(layers: Sequence[str]) -> dict[str, dict[str, int]]:
        asked.append([*layers])
        return {name: {"num_tokens": 5, "token_len": 16, "channels": 16, "num_heads": 2} for name in layers}

    sweep = load(tmp_path, f'{EAGER}[[grid]]\nlayer = "timm:vit_tiny"\nbatch = [1, 2]', look=look)
    assert shapes(sweep) == [(batch, 5, 16, 16, 2) for batch in (1, 2)]
    overrides = {"layer": ["timm:vit_tiny", "vit"], "channels": [16], "num_heads": [2]}
    sweep = load_sweep(Request("quick", overrides=overrides, product=True, look=look))
    assert shapes(sweep) == [(8, 5, 16, 16, 2), (8, 197, 16, 16, 2)]
    assert asked == [["timm:vit_tiny"]] * 2
    assert shapes(load(tmp_path, f'{EAGER}[[grid]]\nlayer = "{MODULE}"\nnum_tokens = 7')) == [(8, 7, 64, 64, 4)]


# What is shipped


def test_a_grid_may_be_for_some_cpus_alone(tmp_path: Path) -> None:
    """A grid counts if the CPU has one of its flags; `quick` has a shape in bfloat16 on CPUs that compute in it."""
    text = f"{EAGER}{GRID}\n{GRID}batch = 7\nif_cpu = ['fast', 'faster']\n"
    assert [point.batch for point in load(tmp_path, text, cpu={"faster", "slow"}).points] == [8, 7]
    assert [point.batch for point in load(tmp_path, text, cpu={"slow"}).points] == [8]
    plain, more = load_sweep("quick"), load_sweep(Request("quick", cpu={"avx512_bf16"}))
    (added,) = {*more.points} - {*plain.points}
    assert (len(more.points), added.dtype) == (10, "bfloat16")
    assert dataclasses.replace(added, dtype="float32") in plain.points


def test_every_shipped_sweep_loads() -> None:
    """A shipped sweep keeps all rules, names itself, and compares at least one implementation with its baseline."""
    for name in shipped_names():
        sweep = load_sweep(name)
        assert sweep.name == name
        assert sweep.baseline in sweep.implementations
        assert len(sweep.implementations) > 1
        assert len(set(sweep.points)) == len(sweep.points) > 0


def test_quick_and_gpu_are_first_answers_within_four_minutes() -> None:
    """Both are races of the vit layer, quick on the CPU in float32, gpu in bfloat16; quick has the article's points."""
    quick, gpu = load_sweep("quick"), load_sweep("gpu")
    assert {*load_sweep("article").points} < {*quick.points}
    assert {(each.layer, each.device, each.dtype) for each in quick.points} == {("vit", "cpu", "float32")}
    assert {(each.layer, each.device, each.dtype) for each in gpu.points} == {("vit", "cuda", "bfloat16")}
    for sweep in (quick, gpu):
        assert (sweep.baseline, sweep.effort.race, sweep.effort.bound) == ("eager", True, 0.01)
        assert sweep.effort.seconds(len(sweep.points)) <= 4 * 60
