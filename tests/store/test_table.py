"""The table of results on disk, whole or in parts: it comes back typed, and what is no results file is refused."""

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.analyse import summary
from bench.store import journal, table
from bench.store.record import Record
from bench.store.table import COLUMNS, RESULTS, SCHEMA_VERSION, STATE, Tabulation, state_of
from tests.analyse import tables
from tests.examples import case, record
from tests.refusals import refusal
from tests.store.disk import full_after

CONTRACT = """
    layer, implementation, device, dtype, mode, batch, num_tokens, token_len, channels, num_heads, qkv_bias,
    qk_scale, key_channels, image_size, patch_size, mask, threads, allocator, timing,
    status, detail,
    latency_s, latency_low_s, latency_high_s, latency_min_s, rounds, processes, calls_per_timing, flagged_share,
    compute_speed, memory_speed, full_speed_share, products_per_s, copies_per_s, page_faults, settled,
    slow_start, host_s,
    flops, least_bytes, flops_per_s, roofline_share, ceiling_flops_per_s, ceiling_bytes_per_s, energy_j,
    baseline, speedup, speedup_low, speedup_high, log_ratio_error, log_ratio_freedom,
    rank, standing, slowdown, slowdown_low, slowdown_high, further_s,
    memory_bytes, peak_bytes, held_bytes, saved_bytes, reserved_bytes, system_peak_bytes, huge_bytes,
    compile_cold_s, compile_warm_s, graphs,
    kernels, error, tolerance, clock_hz, throttle,
    env_id, device_name, torch_version, commit, started_at, schema_version
"""
"""The columns of results.csv, which are a format that others read."""


row = functools.partial(tables.row, case())


def saved(folder: Path, *rows: dict[str, Any]) -> list[list[str]]:
    """Save rows and return the file's cells, the header first; no cell of these rows holds a comma."""
    table.save(tables.table(*rows), folder)
    return [line.split(",") for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]


def with_cell(folder: Path, column: str, cell: str) -> Path:
    """Write a results file of one row with a cell changed by hand."""
    header, cells = saved(folder, row())
    cells[header.index(column)] = cell
    (folder / RESULTS).write_text(",".join(header) + "\n" + ",".join(cells) + "\n", encoding="utf-8")
    return folder / RESULTS


def assert_round_trip(written: pd.DataFrame) -> None:
    """Save a table, load it, and compare values, types and what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        table.save(written, Path(folder))
        pd.testing.assert_frame_equal(table.load(folder), written, check_exact=True)


# What is saved comes back


def test_columns_are_those_of_the_contract() -> None:
    """A results file has the columns of the format, in that order, typed also where it has no rows."""
    assert list(COLUMNS) == [name.strip() for name in CONTRACT.replace("\n", " ").split(",")]
    assert {name: str(kind) for name, kind in tables.table().dtypes.items()} == COLUMNS


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
        ("page_faults", "Float64", [0.0]),
        ("peak_bytes", "Int64", [0, (1 << 53) - 1]),
    ],
)
def test_values_and_types_come_back(tmp_path: Path, column: str, kind: str, values: list[Any]) -> None:
    """A value has its type again after a journey through the file, beside a row where it is missing."""
    table.save(tables.table(*({**row(), column: cell} for cell in (*values, None))), tmp_path)

    loaded = table.load(tmp_path)
    assert str(loaded[column].dtype) == kind
    assert loaded[column].tolist() == [*values, pd.NA]


def test_what_does_not_apply_is_empty(tmp_path: Path) -> None:
    """A number that doesn't apply is an empty cell, and neither 0 nor a word."""
    header, cells = saved(tmp_path, row(status="oom", latency_s=None, speedup_low=float("nan"), settled=None))

    assert [cells[header.index(name)] for name in ("latency_s", "speedup_low", "settled", "peak_bytes")] == [""] * 4
    assert cells[header.index("status")] == "oom"


whole = st.none() | st.integers(0, (1 << 53) - 1)  # bytes beyond 8 PiB are nobody's
number = st.none() | st.floats(allow_nan=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.fixed_dictionaries({"latency_s": number, "speedup": number, "peak_bytes": whole}), min_size=1))
def test_numbers_come_back_exactly(values: list[dict[str, Any]]) -> None:
    """Numbers are the same to the last bit, and missing where they were missing."""
    assert_round_trip(tables.table(*[row(**changes) for changes in values]))


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.text(min_size=1, max_size=20))
@example("carriage\rreturn")
@example("\r")
@example("\0")
def test_any_detail_comes_back(detail: str) -> None:
    """A detail quotes foreign programs: whatever it holds, the file stays readable and the detail the same."""
    assert_round_trip(tables.table(row(detail=detail, status="error"), row()))


def test_a_detail_that_utf8_can_not_hold_does_no_harm(tmp_path: Path) -> None:
    """A lone surrogate, as Python makes of foreign bytes, keeps neither its row nor any other from being saved."""
    table.save(tables.table(row(detail="can't open \udcff.so", status="error"), row()), tmp_path)

    loaded = table.load(tmp_path)
    detail = str(loaded.loc[0, "detail"])

    assert list(loaded["status"]) == ["error", "ok"]
    assert detail.startswith("can't open ")
    assert detail.endswith(".so")


def test_a_results_file_is_found_in_its_folder(tmp_path: Path) -> None:
    """Results are loaded by their folder or by their file, given as a path or as text."""
    table.save(tables.table(row()), tmp_path)

    for path in (tmp_path, str(tmp_path), tmp_path / RESULTS, str(tmp_path / RESULTS)):
        pd.testing.assert_frame_equal(table.load(path), tables.table(row()))


def test_other_columns_are_passed_over(tmp_path: Path) -> None:
    """Columns are found by their names, in any order, and one that this suite doesn't know is left out."""
    tables.table(row()).assign(mood="good").loc[:, ::-1].to_csv(tmp_path / RESULTS, index=False)

    pd.testing.assert_frame_equal(table.load(tmp_path), tables.table(row()))


# Saving is all or nothing


def test_saving_replaces_what_was_there(tmp_path: Path) -> None:
    """The second table takes the place of the first, and no other file stays behind."""
    table.save(tables.table(row(), row()), tmp_path)
    table.save(tables.table(row(status="oom")), tmp_path)

    assert list(table.load(tmp_path)["status"]) == ["oom"]
    assert [path.name for path in tmp_path.iterdir()] == [RESULTS]


def test_a_save_that_fails_leaves_the_old_results(tmp_path: Path) -> None:
    """When the disk is full before all rows are written, the results from before are still there, whole."""
    table.save(tables.table(row()), tmp_path)
    larger = tables.table(*[row(detail="a long story " * 100)] * 100)

    with full_after(10_000), pytest.raises(OSError):  # noqa: PT011 - which one is the system's
        table.save(larger, tmp_path)

    pd.testing.assert_frame_equal(table.load(tmp_path), tables.table(row()))


# What is refused


def refused(path: Path) -> str:
    """Return the refusal of a path, which is one line and names the path."""
    message = refusal(table.load, path)
    assert str(path) in message
    assert "\n" not in message.replace(str(path), "")
    return message


def test_a_path_without_results_is_refused(tmp_path: Path) -> None:
    """A path that isn't there, a folder that is no run, and a path below a file are refused with the reason."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    for path, lacking in ((tmp_path / "run", tmp_path / "run"), (tmp_path, tmp_path / RESULTS)):
        assert refused(path) == f"{lacking} does not exist; expected a run folder or a {RESULTS}"
    assert refused(tmp_path / "file" / "run").startswith(f"{tmp_path / 'file' / 'run'} can't be read: ")


GARBAGE: list[tuple[str, bytes]] = [
    ("nothing", b""),
    ("blank lines", b"\n\n\n"),
    ("prose", b"Dear reader,\nthese are no results, I fear.\n"),
    ("another table", b"a,b\n1,2\n"),
    ("another table of one column", b"schema\n1\n"),
    ("ragged", b"a,b\n1,2\n1,2,3,4\n"),
    ("an open quote", b'layer,schema_version\n"vit,1\n'),
    ("zeros", bytes(1000)),
    ("latin-1", "käse,schema_version\n1,1\n".encode("latin-1")),
    ("utf-16", "layer,schema_version\nvit,1\n".encode("utf-16")),
    ("PNG", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4),
    ("every byte", bytes(range(256)) * 10),
]


@pytest.mark.parametrize(("kind", "content"), GARBAGE, ids=[kind for kind, _ in GARBAGE])
def test_what_is_no_results_file_is_refused(tmp_path: Path, kind: str, content: bytes) -> None:
    """A file of another kind is refused in one line that says that it is no results file."""
    file = tmp_path / RESULTS
    file.write_bytes(content)

    assert refused(file).startswith(f"{file} is no results file: ")


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zip", ".xz", ".zst", ".tar", ".tar.gz", ".png", ".json", ""])
def test_the_ending_of_the_name_makes_no_difference(tmp_path: Path, ending: str) -> None:
    """A file that is no results file is refused as such, whatever it is called."""
    file = tmp_path / f"run{ending}"
    file.write_bytes(b"PK\x03\x04" + os.urandom(8).hex().encode() + b"\n\xff\xfe")

    assert refused(file).startswith(f"{file} is no results file: ")


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    """A file without rows holds nothing to show."""
    table.save(tables.table(), tmp_path)

    assert refused(tmp_path / RESULTS) == f"{tmp_path / RESULTS} holds no rows"


def test_an_older_schema_is_refused(tmp_path: Path) -> None:
    """One row of an older schema is enough; the refusal has both versions and the command that writes it anew."""
    table.save(tables.table(row(), row(schema_version=SCHEMA_VERSION - 1)), tmp_path)

    message = refused(tmp_path / RESULTS)
    assert all(
        words in message
        for words in (f"schema_version {SCHEMA_VERSION - 1} ", f"{SCHEMA_VERSION};", "python -m bench summarise")
    )


@pytest.mark.parametrize("column", ["schema_version", "layer", "latency_s", "qkv_bias", "mask", "kernels"])
def test_a_missing_column_is_refused(tmp_path: Path, column: str) -> None:
    """A file that lacks a column is refused, the column named."""
    tables.table(row()).drop(columns=column).to_csv(tmp_path / RESULTS, index=False)

    assert f"the column {column} is missing" in refused(tmp_path / RESULTS)


@pytest.mark.parametrize("lacking", [[], ["kernels"]])
def test_a_newer_schema_is_refused(tmp_path: Path, lacking: list[str]) -> None:
    """One newer row is enough; the refusal has both versions, whatever columns the newer suite has given up."""
    newer = tables.table(row(), row(schema_version=SCHEMA_VERSION + 1), row()).drop(columns=lacking)
    newer.to_csv(tmp_path / RESULTS, index=False)

    message = refused(tmp_path / RESULTS)

    assert f"schema_version {SCHEMA_VERSION + 1}" in message
    assert f"up to {SCHEMA_VERSION}" in message


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("schema_version", ["", "one", "99999999999999999999999"]),
        ("batch", ["eight", "1.5", "True", "1e999", "99999999999999999999999"]),
        ("latency_s", ["fast", "0x10", '"a\nb"']),
        ("qkv_bias", ["yes", "1"]),
        ("settled", ["true"]),
    ],
)
def test_a_cell_of_another_type_is_refused(tmp_path: Path, column: str, cells: list[str]) -> None:
    """A cell that its column can't hold is refused and not taken for something else."""
    for cell in cells:
        refused(with_cell(tmp_path, column, cell))


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda text: text[: len(text) // 2], id="in the header"),
        pytest.param(lambda text: text[: text.index("\n") + 30], id="in the row"),
    ],
)
def test_a_cut_file_is_refused(tmp_path: Path, cut: Callable[[str], str]) -> None:
    """A file that was cut short is refused and not read as far as it goes."""
    table.save(tables.table(row()), tmp_path)
    file = tmp_path / RESULTS
    file.write_text(cut(file.read_text(encoding="utf-8")), encoding="utf-8")

    refused(file)


def made(folder: Path, *records: Record) -> tuple[Tabulation, journal.Contents]:
    """Return the tabulation of records that are in a journal."""
    contents, tabulation = journal.Contents(folder / journal.JOURNAL), Tabulation()
    for one in records:
        contents.append([one])
        tabulation.put(one.case.point, summary.rows([one], "eager"))
    return tabulation, contents


def restored(folder: Path) -> Tabulation:
    """Return what a run that goes on keeps."""
    state = state_of(folder)
    tabulation = Tabulation()
    tabulation.restore(folder, journal.scan(folder, state.journal_bytes if state else None), state)
    return tabulation


FIRST, SECOND = record(detail='a "text",\r\nof two lines'), record(case=case(num_tokens=5))


def test_the_file_is_the_table(tmp_path: Path) -> None:
    """Its bytes are those of the table's own form, and what is read back is the table."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    before = (tmp_path / RESULTS).read_bytes()
    assert tabulation.table().equals(table.load(tmp_path))
    assert tabulation.table(FIRST.case.point).equals(table.load(tmp_path)[:1])
    table.save(summary.summarise([FIRST, SECOND], "eager"), tmp_path)
    assert (tmp_path / RESULTS).read_bytes() == before
    assert len(table.csv_lines(before)) == 2


def test_a_run_that_goes_on_keeps_rows(tmp_path: Path) -> None:
    """Those of points without newer records are kept; the others are stale."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    assert FIRST.case.point in restored(tmp_path)
    journal.append(tmp_path, [record(case=FIRST.case, process=1)])
    later = restored(tmp_path)
    assert (FIRST.case.point in later, SECOND.case.point in later) == (False, True)


@pytest.mark.parametrize("changed", [RESULTS, STATE, journal.JOURNAL])
def test_what_was_changed_is_made_anew(tmp_path: Path, changed: str) -> None:
    """If a file is another one than was written, no row is taken over."""
    tabulation, contents = made(tmp_path, FIRST, SECOND)
    tabulation.save(tmp_path, contents, 0.0)
    lines = (tmp_path / changed).read_bytes().splitlines(keepends=True)
    (tmp_path / changed).write_bytes(b"".join(lines[:-1]))
    assert not restored(tmp_path)


def test_writing_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a file whose rows and bytes took a second the next one waits for 49; nothing new is never due."""
    clock: list[Any] = [1.0]
    monkeypatch.setattr("bench.store.table.time.monotonic", lambda: clock.pop(0))
    tabulation, contents = made(tmp_path, FIRST)
    tabulation.save(tmp_path, contents, 0.0)
    assert not tabulation.is_due
    tabulation.put(SECOND.case.point, summary.rows([SECOND], "eager"))
    clock += [49.9, 50.1]
    assert [tabulation.is_due, tabulation.is_due] == [False, True]
