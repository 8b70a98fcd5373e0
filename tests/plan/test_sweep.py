"""Sweep files: what they hold, and what they are refused for."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bench.plan.case import CONTROL, Case, Point
from bench.plan.grid import MODELS
from bench.plan.names import IMPLEMENTATIONS
from bench.plan.sweep import BASE_S, POINT_S, Effort, Request, Sweep, altered, load_sweep, shipped_names
from impls.catalogue import IMPLEMENTATIONS as IMPLEMENTATIONS_OF
from tests.make.points import VIT_S, vit_s
from tests.refusals import refusal as refusal_of

EAGER = 'implementations = ["eager"]\n'
GRID = "[[grid]]\nnum_tokens = 10\nchannels = 12\n"
NEEDS_A_RACE = "within_s needs a race: with equal shares budget_s says how long a point takes"
ALL_IMPLEMENTATIONS = ", ".join([*IMPLEMENTATIONS, "module:attribute"])

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


# What a file holds


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
        "oversubscribe": True, "allow_error": 0.05,
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
    ("head", "expected"),
    [
        ('implementations = ["sdpa"]', ("eager", "sdpa")),
        ('implementations = ["sdpa", "eager"]', ("sdpa", "eager")),
        ('implementations = ["sdpa", "sdpa", "eager"]', ("sdpa", "eager")),
        ('implementations = ["sdpa"]\nbaseline = "manual"', ("manual", "sdpa")),
    ],
)
def test_the_baseline_is_always_measured(tmp_path: Path, head: str, expected: tuple[str, ...]) -> None:
    """Implementations stand once each in the order of the file, the baseline first where the file leaves it out.

    The planned cases are those of the first point, then those of the next.
    """
    sweep = load(tmp_path, f"{head}\n{GRID}".replace("= 10", "= [10, 20]"))
    assert sweep.implementations == expected
    assert list(sweep.cases()) == [Case(planned, name) for planned in sweep.points for name in expected]


@pytest.mark.parametrize(
    ("head", "given", "race", "within_s"),
    [
        ("", {}, True, None),
        ("within_s = 60\n", {}, True, 60),
        ("race = false\n", {}, False, None),
        ("", {"race": False}, False, None),
        ("within_s = 60\n", {"race": False}, False, None),
        ("within_s = 60\n", {"within_s": 5.0}, True, 5),
    ],
)
def test_a_sweep_is_a_race_unless_it_says_no_or_spreads_its_replicates(
    tmp_path: Path, head: str, given: dict[str, Any], race: bool, within_s: float | None
) -> None:
    """A file and the command line may end the race; the latter takes the file's `within_s` with it."""
    effort = load(tmp_path, head + EAGER + GRID, effort=given).effort
    assert (effort.race, effort.within_s) == (race, within_s)


def test_another_effort_of_a_sweep_ends_its_race_too() -> None:
    """Without a race its time is gone, whatever it was before; all else stays.

    A race has some seconds for each point, or a time that holds for any number of points.
    """
    assert [Effort(race=True).seconds(points) for points in (0, 10)] == [BASE_S, BASE_S + 10 * POINT_S]
    assert [Effort(race=True, within_s=7.5).seconds(points) for points in (1, 10)] == [7.5, 7.5]
    raced = Sweep("mine", (vit_s(),), ("eager",), effort=Effort(race=True, bound=0.1, within_s=60, processes=5))
    assert altered(raced, (), {"race": False}).effort == Effort(bound=0.1, processes=5)
    assert altered(raced, (), {"within_s": 5.0}).effort == dataclasses.replace(raced.effort, within_s=5.0)
    assert altered(raced, (), {}) == raced


# What a caller may replace


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
    """The control is measured after the implementations, is none of them, and runs the baseline."""
    sweep = load(tmp_path, 'implementations = ["eager", "sdpa"]\nbaseline = "sdpa"\n' + GRID)
    assert sweep.implementations == ("eager", "sdpa")
    assert sweep.measured == ("eager", "sdpa", CONTROL)
    assert [sweep.computed_by(name) for name in sweep.measured] == ["eager", "sdpa", "sdpa"]
    for without in (load(tmp_path, "control = false\n" + EAGER + GRID), load(tmp_path, EAGER + GRID, control=False)):
        assert without.measured == ("eager",)
    assert load(tmp_path, "control = false\n" + EAGER + GRID, control=True).measured == ("eager", CONTROL)
    assert dataclasses.replace(sweep, implementations=("eager",)).measured == ("eager",)  # it has no baseline


# What is refused

KEYS = (
    "implementations, baseline, control, defaults, grid, "
    "processes, budget_s, race, bound, within_s, timeout_s, "
    "oversubscribe, allow_error"
)
NO_IMPLEMENTATIONS = f"implementations is missing; expected a list from {', '.join(IMPLEMENTATIONS)}"
POINT_KEYS = ", ".join([*VIT_S, "model"])
NUM_HEADS = "did you mean num_heads?"
NO_GRID = "the sweep is empty: it must hold at least one [[grid]]"
GRID_FORM = "grid must be written as [[grid]], one table for each product"
DEFAULTS_FORM = "defaults must be written as a table, [defaults]"


def unknown(name: object, near: str = "") -> str:
    """Return the refusal of an implementation."""
    return f"unknown implementation {name!r}; expected one of {ALL_IMPLEMENTATIONS}" + (
        f"; did you mean {near}?" if near else ""
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", f"{NO_IMPLEMENTATIONS}\nmine.toml: {NO_GRID}"),
        (EAGER + "grid = []\n", NO_GRID),
        (EAGER + "[grid]\nchannels = 8\n", GRID_FORM),
        (EAGER + "defaults = 3\n" + GRID, DEFAULTS_FORM),
        ("processs = 3\n" + GRID, f"unknown key 'processs'; expected one of {KEYS}; did you mean processes?"),
        (EAGER + '"a\\nb" = 3\n' + GRID, f"unknown key 'a\\nb'; expected one of {KEYS}"),
        (EAGER + GRID + "num_head = 3\n", f"unknown key 'num_head'; expected one of {POINT_KEYS}; {NUM_HEADS}"),
        (EAGER + "[[grid]]\nnum_tokens = 8\n", "channels is missing; every point needs it"),
        ('implementations = "eager"\n' + GRID, "implementations = 'eager' must be a list of at least one name"),
        ('implementations = ["eager", "sdap"]\n' + GRID, unknown("sdap", "sdpa")),
        ("implementations = [3]\n" + GRID, unknown(3)),
        ('implementations = ["module:"]\n' + GRID, unknown("module:", "module:attribute")),
        ('implementations = ["control"]\n' + GRID, unknown("control")),
        (
            'implementations = ["online[block_token=3]"]\n' + GRID,
            "implementation 'online' has no option 'block_token'; expected one of block_tokens; "
            "did you mean block_tokens?",
        ),
        ('implementations = ["eager[a=1]"]\n' + GRID, "implementation 'eager' has no options, got 'a'"),
        (EAGER + 'baseline = ["eager"]\n' + GRID, unknown(["eager"])),
        (
            'implementations = ["mykernel.py:adapt"]\n' + GRID,
            "implementation 'mykernel.py:adapt' must be spelled module:attribute, the module as Python imports it; "
            "did you mean mykernel:adapt?",
        ),
        (f"processes = 0\n{EAGER}{GRID}", "processes = 0 must be a whole number of at least 1"),
        (f"control = 1\n{EAGER}{GRID}", "control = 1 must be true or false"),
        ("race = false\nwithin_s = 60\n" + EAGER + GRID, NEEDS_A_RACE),
    ],
)
def test_refusals(tmp_path: Path, text: str, refusal: str) -> None:
    """A wrong file is refused in one line: the file, the key, the value, and what was expected."""
    assert refusal_of(load, tmp_path, text) == f"mine.toml: {refusal}"


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"implementations": ["sdap"]}, unknown("sdap", "sdpa")),
        ({"overrides": {"channels": [100], "num_heads": [3]}}, "channels = 100 must be divisible by num_heads = 3"),
        ({"effort": {"race": False, "within_s": 60.0}}, NEEDS_A_RACE),
    ],
)
def test_what_is_given_is_checked_as_well(tmp_path: Path, options: dict[str, Any], refusal: str) -> None:
    """Values from the command line keep the same rules as the file's."""
    assert refusal_of(load, tmp_path, EAGER + GRID, **options) == f"mine.toml: {refusal}"


@pytest.mark.parametrize("text", ["[[grid]\n", b"\xff\xfe", "a = 1\na = 2\n"])
def test_what_is_not_toml_is_refused(tmp_path: Path, text: str | bytes) -> None:
    """A file that is not TOML, or not even text, is refused in one line that says so."""
    line = refusal_of(load, tmp_path, text)
    assert line.startswith("mine.toml: is not TOML: ")
    assert "\n" not in line


@pytest.mark.parametrize("name", ["quikc", "", "."])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A name that no shipped sweep has is refused with those that there are; a file that isn't there, by its name."""
    expected = ", ".join([*shipped_names(), "a file of your own, as mine.toml"])
    assert refusal_of(load_sweep, name).startswith(f"unknown sweep {name!r}; expected one of {expected}")
    assert refusal_of(load_sweep, "missing.toml") == "sweep file missing.toml does not exist"


def test_all_mistakes_are_in_one_message(tmp_path: Path) -> None:
    """Wrong names, two wrong values and a wrong effort of a file are a line each, every line with the file.

    A shipped sweep has no mistakes, so its file is not named.
    """
    assert refusal_of(load_sweep, Request("quick", overrides={"num_tokens": [0]})).startswith("num_tokens = 0 must be")
    text = 'processes = 0\nimplementations = ["sdap", "onlin"]\n' + GRID + 'dtype = "fp32"\nallocator = "foo"\n'
    names, dtype, allocator, processes = refusal_of(load, tmp_path, text).splitlines()
    assert names.startswith("mine.toml: unknown implementations 'sdap', 'onlin'; expected one of eager, ")
    assert dtype.startswith("mine.toml: dtype = 'fp32'")
    assert allocator.startswith("mine.toml: allocator = 'foo' must be")
    assert processes.startswith("mine.toml: processes = 0")


def test_modules_are_looked_for_in_the_folders_that_are_given(tmp_path: Path) -> None:
    """With a path a module that isn't there is refused, and so is an unknown name; without one nobody looks."""
    (tmp_path / "users.py").write_text("def adapt(layer): ...\n", encoding="utf-8")
    names = ["users:adapt", "nosuch:adapt", "sdap"]
    by_path = load(tmp_path, EAGER + GRID, implementations=names[:1], path=[str(tmp_path)])
    assert by_path.implementations[1] == "users:adapt"
    assert load(tmp_path, EAGER + GRID, implementations=names[:2]).implementations[2] == "nosuch:adapt"
    wrong = names
    lines = refusal_of(load, tmp_path, EAGER + GRID, implementations=wrong, path=[str(tmp_path)]).splitlines()
    assert [line.partition(";")[0] for line in lines] == [
        "mine.toml: unknown implementation 'sdap'",
        "mine.toml: implementation 'nosuch:adapt': there is no module nosuch",
    ]


# How options and grids combine


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"batch": [1, 2], "num_heads": [3, 6]}, [(b, 197, 384, 384, h) for b in (1, 2) for h in (3, 6)]),
        ({"channels": [96]}, [(8, 197, 96, 96, 6)]),
        ({"model": ["deit_ti_16_224", "vit_b_16_384"]}, [(8, 197, 192, 192, 3), (8, 577, 768, 768, 12)]),
        ({"model": "vit_b_16_384", "batch": [1, 2]}, [(1, 577, 768, 768, 12), (2, 577, 768, 768, 12)]),
        ({"layer": ["vit", "self"]}, [(8, 197, 384, 384, 6), (8, 197, 384, 384, 1)]),
        ({"layer": ["vit", "package.module:Layer"]}, [(8, 197, 384, 384, 6)] * 2),
        ({"layer": ["package.module:Layer[dim=64,heads=4]"]}, [(8, 197, 64, 64, 4)]),
        ({"layer": ["package.module:Layer[input=3x5x16]", "timm:vit_tiny"]}, [(b, 1, 1, 1, 1) for b in (3, 8)]),
        ({"layer": ["conv"], "image_size": [14], "channels": [64]}, [(8, 196, 64, 64, 1)]),
        ({"num_tokens": ["64:256:x2"]}, [(8, tokens, 384, 384, 6) for tokens in (64, 128, 256)]),
    ],
)
def test_a_product_takes_what_it_leaves_out_from_the_defaults(overrides: dict[str, Any], expected: list[Shape]) -> None:
    """Columns that are not given are quick's usual ones, without what a layer fixes and what a model brings."""
    assert shapes(load_sweep(Request("quick", overrides=overrides, product=True))) == expected


MODULE = "package.module:Layer[dim=64,heads=4]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'implementations = ["sdpa"]\n{GRID}layer = "package.module:Layer"', ("as_is", "as_is", "sdpa")),
        (f'implementations = ["sdpa"]\n[defaults]\nlayer = "timm:vit_tiny"\n{GRID}', ("as_is", "as_is", "sdpa")),
        (f'implementations = ["sdpa"]\n{GRID}layer = ["vit", "package.module:Layer"]', ("as_is", "as_is", "sdpa")),
        (
            f'implementations = ["sdpa"]\nbaseline = "eager"\n{GRID}layer = "package.module:Layer"',
            ("eager", "eager", "sdpa"),
        ),
    ],
)
def test_the_baseline_of_modules_of_anybody_is_the_module_as_it_is(
    tmp_path: Path, text: str, expected: tuple[str, ...]
) -> None:
    """Unless the user's file names another one."""
    sweep = load(tmp_path, text)
    assert (sweep.baseline, *sweep.implementations) == expected


def test_the_default_sweep_of_a_module_replaces_its_core() -> None:
    """Implementations of whole layers of the suite are left out, the module as it is and compiled are there."""
    ours = load_sweep("quick").implementations
    sweep = load_sweep(Request("quick", overrides={"layer": [MODULE]}, product=True))
    cores = [name for name in ours if not IMPLEMENTATIONS_OF[name].layers]
    assert (sweep.baseline, sweep.implementations) == ("as_is", ("as_is", *cores, "compiled"))
    assert set(ours) - set(cores) == {"mha"}
    assert load_sweep(Request("quick", overrides={"layer": ["vit"]}, product=True)).implementations == ours


def test_what_only_a_module_knows_is_asked_of_it(tmp_path: Path) -> None:
    """The points that it shows are those of the sweep; columns in its name are known before."""

    def shaped(points: tuple[Point, ...]) -> tuple[Point, ...]:
        return tuple(dataclasses.replace(each, num_tokens=5, channels=16) for each in points)

    sweep = load(tmp_path, f'{EAGER}[[grid]]\nlayer = "timm:vit_tiny"\nbatch = [1, 2]', shaped=shaped)
    assert shapes(sweep) == [(batch, 5, 1, 16, 1) for batch in (1, 2)]
    assert shapes(load(tmp_path, f'{EAGER}[[grid]]\nlayer = "{MODULE}"\nnum_tokens = 7')) == [(8, 7, 64, 64, 4)]


# What is shipped


def test_the_sweep_of_models_of_images_has_each_that_fits() -> None:
    """Each model of the layer `attention` once, but for SAM's whole map, which takes gigabytes, and FLUX."""
    shapes = [vars(point) for point in load_sweep("vision").points]
    there = {name for name, model in MODELS.items() if any(model.items() <= shape.items() for shape in shapes)}
    wanted = {name for name, model in MODELS.items() if model["layer"] == "attention"} - {"sam_vit_b", "flux"}
    assert wanted <= there
    assert len(shapes) == len(wanted)


def test_the_sweep_of_decoding_crosses_keys_with_their_heads() -> None:
    """One query against doubling numbers of keys, with all heads and with a quarter of them."""
    points = load_sweep("decode").points
    assert {point.num_tokens for point in points} == {1}
    crossed = {(point.num_kv_tokens, point.num_kv_heads) for point in points}
    assert crossed == {(keys, heads) for keys in (512, 1024, 2048, 4096, 8192) for heads in (None, 8)}


def test_every_shipped_sweep_loads() -> None:
    """A shipped sweep keeps all rules, names itself, and compares at least one implementation with its baseline."""
    for name in shipped_names():
        sweep = load_sweep(name)
        assert sweep.name == name
        assert sweep.baseline in sweep.implementations
        assert len(sweep.implementations) > 1
        assert len(set(sweep.points)) == len(sweep.points) > 0


def test_quick_and_article_hold_the_points_that_they_promise() -> None:
    """Quick is a race of float32 inference of the vit layer on the CPU, which ends within four minutes.

    Tokens, heads and channels have three values each around its usual shape; the article's points are among its own.
    """
    sweep, article = load_sweep("quick"), load_sweep("article")
    assert {*article.points} < {*sweep.points}
    own = [p for p in sweep.points if p not in article.points]
    for column in ("num_tokens", "num_heads", "channels"):
        assert len({getattr(p, column) for p in own}) == 3
    assert {(p.layer, p.device, p.dtype, p.mode) for p in sweep.points} == {("vit", "cpu", "float32", "inference")}
    assert {(p.qkv_bias, p.allocator, p.timing) for p in sweep.points} == {(False, "retained", "host")}
    assert (sweep.baseline, sweep.effort.race, sweep.effort.bound) == ("eager", True, 0.01)
    assert sweep.effort.seconds(len(sweep.points)) <= 4 * 60


def test_gpu_holds_what_users_of_a_gpu_have() -> None:
    """A race of bfloat16 inference on a GPU, of all of SDPA's backends for one, which ends within four minutes.

    One point is far smaller than the others, which have 8 to 64 items of 197 to 4096 tokens.
    """
    sweep = load_sweep("gpu")
    tiny, *others = sweep.points
    assert (tiny.batch, tiny.num_tokens, tiny.channels) == (8, 50, 384)
    assert {each.num_tokens for each in others} == {197, 577, 1024, 2048, 4096}
    assert {min(each.batch for each in others), max(each.batch for each in others)} == {8, 64}
    of_all = {(each.device, each.dtype, each.mode, each.timing) for each in sweep.points}
    assert of_all == {("cuda", "bfloat16", "inference", "device-cold")}
    backends = {"sdpa", "sdpa_flash", "sdpa_cudnn", "sdpa_efficient"}
    assert {*sweep.implementations} == backends | {"eager", "compiled_eager", "compiled_sdpa", "flex"}
    assert (sweep.baseline, sweep.effort.race, sweep.effort.bound) == ("eager", True, 0.01)
    assert sweep.effort.seconds(len(sweep.points)) <= 4 * 60


def test_full_and_vit_go_further_than_quick() -> None:
    """Full holds every point of quick, and training too; vit the attention of DeiT and ViT, with their QKV bias."""
    full, quick = load_sweep("full"), load_sweep("quick")
    assert set(quick.points) < set(full.points)
    assert {p.mode for p in full.points} == {"inference", "forward", "train"}
    assert full.effort.processes >= 10
    assert all(point.qkv_bias for point in load_sweep("vit").points)


def test_kernels_has_the_shapes_of_the_paper() -> None:
    """Each batch has 16,384 tokens of 2,048 channels; the points of `fa3-paper` are among its own."""
    points = load_sweep("kernels").points
    assert {point.batch * point.num_tokens for point in points} == {16_384}
    assert {point.channels // point.num_heads for point in points} == {64, 128, 256}
    assert {*load_sweep("fa3-paper").points} < {*points}
