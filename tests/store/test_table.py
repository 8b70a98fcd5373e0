"""The table of results on disk, whole or in parts: it comes back typed, and other files are refused."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.store import table
from bench.store.record import SCHEMA_VERSION
from bench.store.table import COLUMNS, RESULTS
from tests.make import rows as make
from tests.make.records import case
from tests.refusals import refusal

CONTRACT = """
    layer, implementation, device, dtype, mode, batch, num_tokens, token_len, channels, num_heads,
    num_kv_tokens, context_dim, num_kv_heads, qkv_bias, qk_scale, key_channels, image_size, patch_size,
    qk_norm, rope, attn_bias, window_size, mask, lengths, threads, allocator, timing,
    point, status, detail,
    latency_s, latency_low_s, latency_high_s, host_s, baseline, speedup, speedup_low, speedup_high,
    rank, standing, slowdown, slowdown_low, slowdown_high,
    memory_bytes, saved_bytes, energy_j, compile_cold_s, flops,
    error, flagged_share, processes,
    kernels, env_id, device_name, torch_version, commit, schema_version
"""
"""The columns of results.csv, which are a format that others read."""


row = functools.partial(make.row, case())


def saved(folder: Path, *rows: dict[str, Any]) -> list[list[str]]:
    """Save rows and return the file's cells, the header first; no cell of these rows holds a comma."""
    table.save(make.table(*rows), folder)
    return [line.split(",") for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]


def with_cell(folder: Path, column: str, cell: str) -> Path:
    """Write a results file of one row with a cell changed by hand."""
    header, cells = saved(folder, row())
    cells[header.index(column)] = cell
    (folder / RESULTS).write_text(",".join(header) + "\n" + ",".join(cells) + "\n", encoding="utf-8")
    return folder / RESULTS


def as_csv(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return rows as read back from results.csv."""
    with tempfile.TemporaryDirectory() as folder:
        table.save(table.of_rows(rows), Path(folder))
        return table.load(folder)


# What is saved comes back


def test_columns_are_those_of_the_contract() -> None:
    """A results file has the columns of the format, in that order; a table is typed also where it has no rows."""
    header = table.as_csv(make.table()).decode().strip().split(",")
    assert header == [name.strip() for name in CONTRACT.replace("\n", " ").split(",")]
    assert {name: str(kind) for name, kind in make.table().dtypes.items()} == COLUMNS


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        ("implementation", "string", ["users.kernel:adapt"]),
        ("batch", "Int64", [13]),
        ("qkv_bias", "boolean", [True, False]),
        ("detail", "string", ["NA", "nan", "None", "007", 'a "quoted", comma', "two\nlines"]),
        ("commit", "string", ["1234567"]),
        ("env_id", "string", ["00000000001e", "1234567890e1"]),
        ("latency_s", "Float64", [0.1, 1e-9, 1 / 3]),
        ("flagged_share", "Float64", [0.0]),
        ("memory_bytes", "Int64", [0, (1 << 53) - 1]),
    ],
)
def test_values_and_types_come_back(tmp_path: Path, column: str, kind: str, values: list[Any]) -> None:
    """A value has its type again in the file that is read, also if another row lacks it."""
    table.save(make.table(*({**row(), column: cell} for cell in (*values, None))), tmp_path)

    loaded = table.load(tmp_path)
    assert str(loaded[column].dtype) == kind
    assert loaded[column].tolist() == [*values, pd.NA]


def test_what_the_analysis_alone_needs_is_in_no_file(tmp_path: Path) -> None:
    """It is in the table of a journal, and empty in one that was read from a file."""
    table.save(make.table(row(peak_bytes=1024, settled=True)), tmp_path)

    assert table.load(tmp_path)[["peak_bytes", "settled"]].isna().all(axis=None)


whole = st.none() | st.integers(0, (1 << 53) - 1)  # bytes beyond 8 PiB don't occur
number = st.none() | st.floats(allow_nan=False)


details = st.text(st.characters(codec="utf-8"), max_size=20)


@settings(max_examples=10)
@given(st.lists(st.fixed_dictionaries({"latency_s": number, "memory_bytes": whole, "detail": details}), min_size=1))
@example(
    [{"latency_s": 1 / 3, "memory_bytes": (1 << 53) - 1, "detail": detail} for detail in ("a\rb", "\r", "\0", "NA")]
)
def test_numbers_and_texts_come_back_exactly(values: list[dict[str, Any]]) -> None:
    """Numbers are the same to the last bit, and missing where they were missing; a detail quotes foreign programs."""
    written = make.table(*[row(**{**each, "detail": each["detail"] or None}) for each in values])
    rows = [row(**each) for each in values]
    pd.testing.assert_frame_equal(as_csv(*rows), written, check_exact=True)


def test_other_columns_are_passed_over(tmp_path: Path) -> None:
    """Columns are found by their names, in any order, and one that this suite doesn't know is left out."""
    make.table(row()).assign(mood="good").loc[:, ::-1].to_csv(tmp_path / RESULTS, index=False)

    pd.testing.assert_frame_equal(table.load(tmp_path), make.table(row()))


# What is refused


def refused(path: Path) -> str:
    """Return the refusal of a path, which is one line and names the path."""
    message = refusal(table.load, path)
    assert str(path) in message
    assert "\n" not in message.replace(str(path), "")
    return message


def test_a_path_without_results_is_refused(tmp_path: Path) -> None:
    """A missing path, a folder that isn't a run, and a path below a file are refused with the reason."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    for path, lacking in ((tmp_path / "run", tmp_path / "run"), (tmp_path, tmp_path / RESULTS)):
        assert refused(path) == f"{lacking} does not exist; expected a run folder or a {RESULTS}"
    assert refused(tmp_path / "file" / "run").startswith(f"{tmp_path / 'file' / 'run'} can't be read: ")


GARBAGE: dict[str, bytes] = {
    "nothing": b"",
    "ragged": b"a,b\n1,2\n1,2,3,4\n",
    "zeros": bytes(1000),
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_results_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A file of another kind is refused in one line that says so, whatever its suffix."""
    for name in (RESULTS, "run.gz", "run.zip", "run.zst", "run"):
        file = tmp_path / name
        file.write_bytes(GARBAGE[kind])
        assert refused(file).startswith(f"{file} is not a results file: ")


def test_another_schema_is_refused(tmp_path: Path) -> None:
    """A single such row is enough; the refusal has both versions, even if the other suite has other columns."""
    for change in (-1, 1):
        other = make.table(row(), row(schema_version=SCHEMA_VERSION + change)).drop(columns="kernels")
        other.to_csv(tmp_path / RESULTS, index=False)
        versions = f"schema_version is {SCHEMA_VERSION + change}, but this suite reads only {SCHEMA_VERSION}"
        assert versions in refused(tmp_path / RESULTS)


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    """A file that lacks a column is refused, the column named, also if the column follows from others."""
    for column in ("schema_version", "layer", "latency_s", "mask"):
        make.table(row()).drop(columns=column).to_csv(tmp_path / RESULTS, index=False)
        assert f"the column {column} is missing" in refused(tmp_path / RESULTS)


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("schema_version", ["", "one", "99999999999999999999999"]),
        ("batch", ["eight", "1.5", "True", "1e999", "99999999999999999999999"]),
        ("latency_s", ["fast", "0x10", '"a\nb"']),
        ("qkv_bias", ["yes", "1", "true"]),
    ],
)
def test_a_cell_of_another_type_is_refused(tmp_path: Path, column: str, cells: list[str]) -> None:
    """A cell that its column can't hold is refused and not taken for something else."""
    for cell in cells:
        refused(with_cell(tmp_path, column, cell))


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    """A file that was cut short, in its header or in a row, is refused and not read as far as it goes."""
    table.save(make.table(row()), tmp_path)
    text = (tmp_path / RESULTS).read_text(encoding="utf-8")
    for end in (len(text) // 2, text.index("\n") + 30):
        (tmp_path / RESULTS).write_text(text[:end], encoding="utf-8")
        refused(tmp_path / RESULTS)
