"""The columns of rows of results."""

from collections import Counter

import pytest

from bench.show import columns, documented
from bench.show.columns import algorithm
from bench.show.rows import plain
from bench.show.terminal.console import rendered
from bench.show.terminal.results import results as table_of
from bench.store.metrics import COLUMNS, Heading, Metric, Unit
from tests.make.points import vit_s
from tests.make.results import timed


def test_a_metric_is_shown_everywhere_by_its_entry_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal and in the documents; a test of pages sees it there."""
    new = Metric("rounds", meaning="what it means", unit=Unit.COUNT, kind=int, heading=Heading("new", 21, 0))
    monkeypatch.setattr(columns, "METRICS", {**COLUMNS, "rounds": new})
    table = timed([vit_s()], {"eager": 0.02, "sdpa": 0.01})
    assert "  new " in rendered(table_of(table, "eager"))
    assert "| new | what it means |" in documented.shown()


def test_a_metric_hides_no_other_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric may have the place of any other column, and both are shown."""
    before = Counter(column.heading for column in columns.columns("eager"))
    for place in range(0, 130, 5):
        heading = Heading("new", place, 20)
        monkeypatch.setattr(columns, "METRICS", {**COLUMNS, "new": Metric("new", meaning="new", heading=heading)})
        assert Counter(column.heading for column in columns.columns("eager")) == before + Counter(["new"])


def test_a_row_of_a_gpu_has_the_hosts_time() -> None:
    """Unless it is timed by the host; a CPU's row has no other time."""
    rows = {timing: plain(timed([vit_s(device=device, timing=timing)], {"sdpa": 1.0}))[0]
        for device, timing in (("cuda", "device-cold"), ("cuda", "graph"), ("cpu", "host"))}  # fmt: skip
    texts = {column.key: column.text for column in columns.columns("eager")}
    shown = [texts["host_s"]({**row, "host_s": None if timing == "host" else 6e-5}) for timing, row in rows.items()]
    assert shown == ["60.0 µs", "60.0 µs", ""]


@pytest.mark.parametrize(
    ("kernels", "word"),
    [
        ("mm;_scaled_dot_product_flash_attention_for_cpu;copy_;add", "flash"),
        ("mm;_scaled_dot_product_attention_math;bmm;_softmax", "math"),
        ("mm;_native_multi_head_attention;bmm;_softmax;add", "fast path"),
        ("mm;copy_;bmm;_softmax;add", "products"),
        ("mkldnn_convolution;copy_;_softmax", "products"),
        ("CompiledFxGraph;mm;bmm;copy_", "products + compiled"),
        ("CompiledFxGraph;mm;_scaled_dot_product_flash_attention_for_cpu", "flash + compiled"),
        ("flash_fwd_kernel<Traits>", "flash"),
        ("my_attention_kernel;elementwise", "my_attention_kernel"),
        ("ampere_sgemm_128x64_tn;softmax_warp_forward", "products"),
        ("void a_kernel_with_a_name_of_many_letters", "void a_kernel_with_a_na…"),
        (None, ""),
        ("", ""),
    ],
)
def test_kernels_become_a_word(kernels: str | None, word: str) -> None:
    """The algorithm follows from its kernel's name, a compiler is named, and so is a kernel that nobody knows."""
    assert algorithm(kernels) == word


def test_how_a_core_got_in_is_a_column() -> None:
    """Its text is shown, and cut where it is long; without any the column is left out."""
    table = timed([vit_s(num_tokens=50)], {"eager": 0.01, "sdpa": 0.005})
    way = "graph, 1 of 3 softmaxes stay, as that at a_long_name_of_a_package/file.py:3"
    tables = [table_of(table.assign(adapted_by=each), "eager") for each in (None, "graph", way)]
    shown = [rendered(each, width=200) for each in tables]
    assert ["core by" in each for each in shown] == [False, True, True]
    assert "graph, 1 of 3 softmaxes stay" in shown[2]
    assert way not in shown[2]
