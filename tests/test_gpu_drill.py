"""The drill for a GPU: a line for each part, whatever becomes of it."""

import importlib.metadata
import math
import os
import random
import tarfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
import torch

from bench.measure import cuda
from tests.children import in_child
from tests.drills import gpu as drill
from tests.drills import gpu_parts, gpu_torch
from tests.make.simulated_gpu import CLOCK_HZ, Event, Gpu, gpu

__all__ = ["gpu"]

NO_GPU = "needs a CUDA device: it has events"


@pytest.mark.slow
def test_a_rehearsed_run_is_packed_with_all_that_a_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and log are in OUT beside journal, table, page and pictures of a run, whose workers make their times up."""
    monkeypatch.setenv("PYTEST_PLUGINS", "tests.scripted")
    assert drill.main([str(tmp_path), "--device", "cpu", "--parts", "timings", "--within-s", "7200"]) == 0
    _, line, last = (tmp_path / drill.LINES).read_text().splitlines()
    assert line.startswith("timings: passed: host ")
    assert last.startswith("0 of 1 parts failed; ")
    assert "===== timings" in (tmp_path / drill.LOG).read_text()
    with tarfile.open(tmp_path / drill.OTHERS) as packed:
        names = {Path(name).relative_to("timings/timings").as_posix() for name in packed.getnames()}
    assert {"journal.jsonl", "results.csv", "environment.json", "report.html"} <= names
    assert any(name.startswith("plots/") for name in names)


def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, most_s: float = 30) -> list[str]:
    """Return the lines of a part that is this program."""
    folder = tmp_path / "tests" / "drills"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):  # else the suite's own would come first where that is installed
        (package / "__init__.py").touch()
    (folder / "gpu_parts.py").write_text(program)
    monkeypatch.setattr(drill, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / drill.LOG).write_text("")
    return drill.tried("rows", "cpu", tmp_path / "runs", tmp_path / drill.LOG, most_s)


@pytest.mark.slow
def test_a_part_that_crashes_says_where_and_ends_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The innermost calls stand below the line with the signal; what needs a GPU is skipped with the reason."""
    deep = "import os\ndef inner(depth):\n    inner(depth - 1) if depth else os.kill(os.getpid(), 11)\ninner(30)"
    (tmp_path / "torch.py").write_text(deep)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert drill.main([str(tmp_path), "--device", "cpu", "--parts", "imports,known"]) == 1
    _, line, *below, other, last = (tmp_path / drill.LINES).read_text().splitlines()
    assert line.startswith("imports: failed: ended by SIGSEGV: Fatal Python error: Segmentation fault (")
    assert any(each.endswith(f'File "{tmp_path}/torch.py", line 3 in inner') for each in below)
    assert len(below) <= drill.TAIL + 1
    assert other.startswith(f"known: skipped: {NO_GPU}")
    assert last.startswith("1 of 2 parts failed; ")


@pytest.mark.slow
def test_a_part_that_takes_too_long_says_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last that it said: the calls of the main thread."""
    program = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)"
    (tmp_path / "torch.py").write_text(f"print('so far', flush=True)\n{program}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    line, *below = drill.tried("imports", "cpu", tmp_path / "runs", tmp_path / drill.LOG, 6)
    assert line == "imports: failed: took longer than 6 s"
    assert below[0].startswith("    Timeout (")
    assert below[1] == "    so far"
    assert below[3].endswith(f'File "{tmp_path}/torch.py", line 4 in <module>')


def test_a_traceback_stands_below_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has the error itself."""
    line, *below = ends(tmp_path, monkeypatch, "def broken():\n    raise RuntimeError('no kernel')\nbroken()")
    assert line.startswith("rows: failed: RuntimeError: no kernel (")
    assert any("Traceback" in each for each in below)
    assert any("in broken" in each for each in below)


def test_an_unexpected_error_of_a_part_is_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After its traceback, in one line, however many the message has."""

    def broken(_drill: gpu_parts.Drill) -> str:
        raise ValueError("two\nlines")

    monkeypatch.setattr(gpu_parts, "rows", broken)
    assert gpu_parts.main("rows", "cpu", str(tmp_path), str(time.monotonic() + 60)) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "ValueError: two lines"
    assert any("in broken" in line for line in said)


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    """The line says which there are."""
    with pytest.raises(SystemExit) as end:
        drill.main([str(tmp_path), "--parts", "corrects"])
    assert end.value.code == 2


def test_old_and_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the version that is installed and the one that is needed."""

    def version(name: str) -> str:
        if name == "rich":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0" if name == "pandas" else "9999"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert drill.packages() == ["pandas 1.0 is installed, pandas>=2.2 is needed", "rich is missing"]


def test_all_parts_fit_into_eight_minutes_and_eight_files() -> None:
    """Each part is a function."""
    assert drill.WITHIN_S <= 480
    assert len({drill.LINES, drill.LOG, drill.OTHERS, *drill.PACKED.values()}) <= 8
    missing = [part for part in drill.PARTS if not hasattr(gpu_parts, part) and not hasattr(gpu_torch, part)]
    assert missing == []


def test_files_in_out_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest files of a run are left out, and named; a long log loses its middle."""
    monkeypatch.setattr(drill, "MOST_BYTES", 5000)
    runs, out = tmp_path / "runs", tmp_path / "out"
    for name, size in (("journal.jsonl", 1000), ("trace.json.gz", 9000)):
        file = runs / "quick" / "quick" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(random.Random(0).randbytes(size))
    out.mkdir()
    assert drill.keep("quick", runs, out) == "quick/quick/trace.json.gz"
    path = out / drill.PACKED["quick"]
    assert path.stat().st_size <= 5000
    with tarfile.open(path) as packed:
        assert packed.getnames() == ["quick/quick/journal.jsonl"]
    log = out / drill.LOG
    log.write_bytes(b"first" + b"." * 9000 + b"last")
    drill.shorten(log)
    text = log.read_bytes()
    assert len(text) <= 5000
    assert text.startswith(b"first")
    assert text.endswith(b"last")


def test_rows_that_are_missing_or_bad_fail_a_part() -> None:
    """The text has the reason of each."""
    rows = [("eager", "ok", ""), ("sdpa_cudnn", "unsupported", "no cuDNN"), ("sdpa", "error", "no kernel")]
    table = pd.DataFrame(rows, columns=["implementation", "status", "detail"]).assign(latency_s=1e-5, host_s=2e-6)
    may = {"eager": "ok: ", "sdpa_cudnn": "(ok|unsupported): "}
    said = "eager ok: 10.0 us, host 2.0 us; sdpa_cudnn unsupported: no cuDNN"
    assert gpu_parts._ends(table[:2], may) == said
    for own, expected, why in (
        (table[:2], may | {"sdpa_cudnn": "ok: "}, "sdpa_cudnn unsupported: no cuDNN, expected ok: ; eager ok: "),
        (table, may | {"sdpa": "ok: "}, "sdpa error: no kernel, expected"),
        (table[:1], may, "not measured in time: sdpa_cudnn; eager ok: "),
        (table[1:2], {"sdpa_cudnn": "unsupported: "}, "no cuDNN"),
    ):
        with pytest.raises(drill.FailedError, match=why):
            gpu_parts._ends(own, expected)


def test_a_fork_that_dies_says_its_signal() -> None:
    """A fork that raises says the error."""

    def raises() -> str:
        raise RuntimeError("Cannot re-initialize CUDA\nin forked subprocess")

    def dies() -> str:
        os.kill(os.getpid(), 9)
        return "alive"

    assert in_child(lambda: "ok") == "ok"
    assert in_child(raises) == "RuntimeError: Cannot re-initialize CUDA in forked subprocess"
    assert in_child(dies) == "ended by SIGKILL"


def test_kernels_of_known_length_read_in_proportion(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that take their time are found by the empty pair, kernels that take too long by their times."""
    assert "0.00 us" in gpu_torch.known("cuda")
    gpu.event_s = 1e-5
    with pytest.raises(drill.FailedError, match=r"an empty pair of events 10\.00 us"):
        gpu_torch.known("cuda")
    gpu.event_s = 0.0
    monkeypatch.setattr(cuda, "_sleep", lambda cycles: gpu.launch(cycles / CLOCK_HZ + 1e-4))
    with pytest.raises(drill.FailedError, match=r"off by -5\.2%"):
        gpu_torch.known("cuda")


def test_a_slowed_host_keeps_the_device_time(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a hold its pause is in the time."""

    def pause(seconds: float) -> None:
        gpu.now_s += seconds

    monkeypatch.setattr(gpu_torch, "pause", pause)
    assert "with 1 ms of the host 266.7 us" in gpu_torch.slowed("cuda")
    monkeypatch.setattr(torch.cuda, "Event", lambda **_options: Event(gpu))
    monkeypatch.setattr(gpu_torch, "_device_s", lambda call, _timing: gpu_torch._by_events_alone(call))
    with pytest.raises(drill.FailedError, match=r"of the host 1[0-9]{3}\."):
        gpu_torch.slowed("cuda")


@pytest.fixture
def on_gpu(tmp_path: Path) -> gpu_parts.Drill:
    """Return the drill of a GPU, a minute before its end."""
    return gpu_parts.Drill("cuda", tmp_path, time.monotonic() + 60)


def faked(monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame) -> None:
    """Let every run have these rows."""
    monkeypatch.setattr(gpu_parts.Drill, "bench", lambda *_words, **_options: table)


def seen(part: Callable[[gpu_parts.Drill], str], of: gpu_parts.Drill) -> tuple[bool, str]:
    """Return whether a part passes, and what it says."""
    try:
        return True, part(of)
    except drill.FailedError as reason:
        return False, str(reason)


@pytest.mark.parametrize(
    ("left", "joined", "said"),
    [("incorrect", "ok", ""), ("ok", "ok", "side_stream ok: 10"), ("incorrect", "incorrect", "joined_stream inc")],
)
def test_work_on_another_stream_is_blamed_unless_it_is_joined(
    left: str, joined: str, said: str, on_gpu: gpu_parts.Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part fails if work that was left is `ok`, or if work that was joined is not."""
    ends = {"eager": "ok", "tests.foreign:joined_stream": joined, "tests.hacks:side_stream": left}
    rows = [(tokens, name, status, 1e-5, "why") for tokens in (16, 1024) for name, status in ends.items()]
    columns = ["num_tokens", "implementation", "status", "latency_s", "detail"]
    faked(monkeypatch, pd.DataFrame(rows, columns=columns).assign(host_s=None))
    passes, line = seen(gpu_parts.streams, on_gpu)
    assert (passes, said in line) == (not said, True)


@pytest.mark.parametrize(
    ("at_30_us", "at_1_ms", "off"), [(1.019, 0.991, ""), (0.979, 1.0, "1 off"), (1.0, 1.011, "1 off")]
)
def test_twins_are_within_one_percent_behind_a_hold(
    at_30_us: float, at_1_ms: float, off: str, on_gpu: gpu_parts.Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 2 % in short calls; the line has the ratios of both ways to time."""
    rows = [("control", at_30_us, 3e-5), ("control", at_1_ms, 1e-3), ("sdpa", 1.0, 1e-3)]
    faked(monkeypatch, pd.DataFrame(rows, columns=["implementation", "speedup", "latency_s"]))
    monkeypatch.setattr(gpu_parts, "TWINS", gpu_parts.TWINS[:2])
    monkeypatch.setattr(gpu_parts, "_said", lambda *_command: "ratio 0.84\nratio 1.58\n")
    passes, line = seen(gpu_parts.twins, on_gpu)
    assert (passes, off in line) == (not off, True)
    assert f"{at_30_us:.3f} at 30 us, {at_1_ms:.3f} at 1000 us" in line
    assert "0.840 to 0.840, 1.580 to 1.580" in line


@pytest.mark.parametrize(("loop", "passes"), [("ok", True), ("unsupported", False)])
def test_what_packing_leaves_stands_beside_the_share_of_padding(
    loop: str, passes: bool, on_gpu: gpu_parts.Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 32 places 16 are tokens; a kernel that torch lacks is no failure, a loop that fails is one."""
    rows = [("sdpa", "ok", 2e-3, 400.0), ("buckets", "ok", 1.5e-3, 300.0), ("loop", loop, 1e-3, 100.0)]
    rows += [(name, "unsupported", math.nan, math.nan) for name in ("nested", "flex_packed", "varlen")]
    table = pd.DataFrame(rows, columns=["implementation", "status", "latency_s", "peak_bytes"])
    table = table.assign(lengths="list:8+4+2+2", batch=4, num_tokens=8, host_s=None, detail="no kernel")
    faked(monkeypatch, table)
    has_passed, line = seen(gpu_parts.packed, on_gpu)
    assert has_passed is passes
    assert "varlen unsupported: no kernel" in line
    if passes:
        assert line.startswith("50% padding in sdpa; buckets 0.75 of its time, 0.75 of its peak; loop 0.50 of its time")
        assert "0.25 of its peak" in line


def test_torchs_warnings_are_not_in_the_log_of_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be the reasons of backends that refuse, again and again; those stand in the counts."""

    def checked(names: Sequence[str], *_at: str) -> dict[str, tuple[Counter[str], float]]:
        warnings.warn("Flash attention kernel not used because:", stacklevel=1)
        return {name: (Counter(accepted=1), 0.3) for name in names}

    monkeypatch.setattr(gpu_torch, "checked", checked)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert gpu_torch.correct("cuda").endswith("none refused, in float32, bfloat16, float16")
    assert shown == []
