"""What this machine is, and that it stays the same machine."""

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.machine import facts
from bench.machine.facts import Detectable, available_devices, between_run_scatter, detectable, gpus, torch_version
from bench.plan.case import HUGE, RETAINED
from bench.store.environment import Environment, differences

ROOT = Path(__file__).parents[2]
TORCH_FACTS: dict[str, Any] = {"torch": "2.13.0", "gpus": {"cuda:0": "H200"}}


FOUND: dict[str, Any] = {"detectable": {"1": 0.019}, "processes": 10}
WITHOUT_GPU: dict[str, Any] = {"torch": "2.13.0", "gpus": {}}


def in_another_process(code: str, **environment: str) -> str:
    """Return what a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_identity_is_the_same_in_another_process() -> None:
    """Another process on the machine finds the same env_id, whatever its hash seed, arguments and sweep."""
    code = f"from bench.machine import facts; print(facts.observe({TORCH_FACTS!r}, {{'sweep': 'vit'}}, {{}}).env_id)"
    here = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})

    assert in_another_process(code, PYTHONHASHSEED="7") == here.env_id
    assert here.context["sweep"] == "quick"
    assert here.identity == facts.observe(TORCH_FACTS, {"sweep": "full"}, {}).identity


def test_what_torch_found_is_part_of_the_identity() -> None:
    """A new version of torch is another identity, and its GPUs give the devices their names."""
    here = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})
    newer = facts.observe({**TORCH_FACTS, "torch": "2.14.0"}, {"sweep": "quick"}, {})

    assert differences(here, newer) == ["torch: '2.13.0' against '2.14.0'"]
    assert here.device_name("cuda") == "H200"
    assert here.device_name("cpu") == here.identity["cpu"] != ""


@pytest.mark.parametrize("variable", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_the_wait_policy_is_part_of_the_identity(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How OpenMP's threads wait changes what is measured, and so the identity."""
    monkeypatch.delenv(variable, raising=False)
    before = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})
    monkeypatch.setenv(variable, "7")
    after = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})

    assert before.env_id != after.env_id
    assert [line.partition(":")[0] for line in differences(before, after)] == ["wait_policy"]


def test_preloaded_libraries_are_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another allocator changes what is measured; the folder that it lies in doesn't."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    plain, ours, theirs = (
        preloading(monkeypatch, value) for value in ("", "/usr/lib/libtcmalloc.so", "/opt/lib/libtcmalloc.so")
    )
    assert "preloaded" not in plain.identity
    assert ours.identity["preloaded"] == ["libtcmalloc.so"]
    assert ours.env_id == theirs.env_id != plain.env_id


def preloading(monkeypatch: pytest.MonkeyPatch, value: str) -> Environment:
    """Return the environment of a machine that preloads these libraries."""
    monkeypatch.setenv("LD_PRELOAD", value)
    return facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})


def test_load_memory_and_command_are_not_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busier machine, another command line or another host name are the same identity."""
    before = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 99.0, 99.0))
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    monkeypatch.setattr(sys, "argv", ["/usr/bin/other", "--option"])
    after = facts.observe(TORCH_FACTS, {"sweep": "quick"}, {})

    assert after.env_id == before.env_id
    assert after.state["load_1min"] == 99.0
    assert after.context["host"] == "elsewhere"
    assert after.context["command"] == ["other", "--option"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system can't pin a process to a core")
def test_cores_are_those_that_the_process_may_use() -> None:
    """A process that is pinned to one core has one core, and one thread by default."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from bench.machine import facts; "
        "print(facts.visible_cores(), facts.physical_cores(), facts.default_threads())"
    )

    assert in_another_process(code) == "1 1 1"


def test_cores_are_counted() -> None:
    """There is at least one core, and no more physical cores than visible ones."""
    assert 1 <= facts.physical_cores() <= facts.visible_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 2), (8, 7), (64, 63)])
def test_one_core_stays_free(cores: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default all physical cores but one are used, and at least one."""
    monkeypatch.setattr(facts, "physical_cores", lambda: cores)

    assert facts.default_threads() == threads


CPUINFO = "processor : 0\nmodel name : A CPU @ 2 GHz\nflags : {flags}\n\nprocessor : 1\nmodel name : Another\n"


def read(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> tuple[str, str]:
    """Return the model and the flags that the machine module makes of a cpuinfo."""
    file = folder / "cpuinfo"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(facts, "Path", lambda _: file)
    return facts.cpu_model(), facts.cpu_flags()


def test_cpu_flags_are_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags in another order are the same, one less is not, none have no hash; the model is the first processor's."""
    model, flags = read(monkeypatch, tmp_path, CPUINFO.format(flags="sse avx2"))
    _, turned = read(monkeypatch, tmp_path, CPUINFO.format(flags="avx2  sse"))
    _, fewer = read(monkeypatch, tmp_path, CPUINFO.format(flags="sse"))
    _, none = read(monkeypatch, tmp_path, CPUINFO.format(flags=""))

    assert model == "A CPU @ 2 GHz"
    assert turned == flags != fewer
    assert re.fullmatch(r"[0-9a-f]{12}", flags)
    assert none == ""


def test_a_machine_that_tells_nothing_has_a_model_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system lists no processor the model is at least the architecture."""
    missing = tmp_path / "missing"
    monkeypatch.setattr(facts, "Path", lambda _: missing)

    assert facts.cpu_model() != ""
    assert facts.cpu_flags() == ""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one commit that holds the machine module, and takes its place."""
    module = tmp_path / "bench" / "machine" / "facts.py"
    module.parent.mkdir(parents=True)
    module.write_text("the first version\n", encoding="utf-8")
    monkeypatch.setattr(facts, "__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as somebody without a configuration."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "core.hooksPath="]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_commit(checkout: Path) -> None:
    """The first twelve digits of the checkout's, with a plus once a file differs from it; empty outside a checkout."""
    assert facts.commit() == ""
    git(checkout, "init", "--quiet")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "First")
    git(checkout, "tag", "--annotate", "v1", "--message", "One")
    head = git(checkout, "rev-parse", "HEAD")

    assert facts.commit() == head[:12]

    Path(facts.__file__).write_text("the second version\n", encoding="utf-8")
    assert facts.commit() == head[:12] + "+"


def test_the_commit_of_a_users_repository(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It follows the suite's with the name of its folder, so that two commits of a kernel can be told apart."""
    heads = []
    users = tmp_path_factory.mktemp("mykernel")
    for folder in (checkout, users):
        git(folder, "init", "--quiet")
        (folder / "mykernel.py").touch()
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "First")
        heads.append(git(folder, "rev-parse", "HEAD")[:12])
    (users / "inner").mkdir()

    with contextlib.chdir(users / "inner"):
        assert facts.commit() == f"{heads[0]}, {users.name} {heads[1]}"


def test_no_commit_without_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without git the commit is empty, and nothing fails."""
    git(checkout, "init", "--quiet")
    monkeypatch.setenv("PATH", str(checkout))

    assert facts.commit() == ""


def test_a_containers_limit_bounds_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least that a control group or one above it has left counts; `max` is no limit."""
    own = tmp_path / "job" / "step"
    own.mkdir(parents=True)
    for folder, limit in ((own, "max"), (own.parent, "5000")):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("2000\n")
    monkeypatch.setattr(facts, "_control_groups", lambda: iter([own, own.parent, tmp_path]))
    assert facts.available_bytes() == 3000
    (own.parent / "memory.stat").write_text("anon 1200\ninactive_file 600\nactive_file 200\n")
    assert facts.available_bytes() == 3600  # what was not read lately gives way


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores can't be chosen here")
def test_the_cores_of_others_are_not_our_business(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four cores this process may use two: only their seconds count."""
    times = [psutil._pslinux.scputimes(user, 0, 1, 100, 0, 0, 0, 0, 0, 0) for user in (10, 20, 40, 80)]
    monkeypatch.setattr(psutil, "cpu_times", lambda **_: times)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2})
    assert facts.busy_s() == 20 + 40 + 2 * 1


def with_huge_pages(patch: pytest.MonkeyPatch, folder: Path, modes: str | None = "always [madvise] never") -> None:
    """Make the machine one with Linux, glibc and these modes of huge pages; None means that it has no such file."""
    patch.setattr(platform, "system", lambda: "Linux")
    patch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    patch.setattr(facts, "HUGE_PAGES", folder / "enabled")
    if modes is not None:
        (folder / "enabled").write_text(f"{modes}\n")


@pytest.mark.parametrize("modes", ["always [madvise] never", "[always] madvise never"])
def test_huge_pages_that_can_be_had_are_not_missing(
    modes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all memory gets them or the memory for which they are asked."""
    with_huge_pages(monkeypatch, tmp_path, modes)
    assert facts.huge_pages_missing() == ""


@pytest.mark.parametrize(
    ("modes", "words"), [(None, "can't be read"), ("always madvise [never]", "says [never]")], ids=["absent", "never"]
)
def test_a_system_without_huge_pages_is_told_with_its_file(
    modes: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that has none lacks the file, and one where they are switched off says so in it."""
    with_huge_pages(monkeypatch, tmp_path, modes)
    said = facts.huge_pages_missing()
    assert f"{tmp_path / 'enabled'} {words}" in said
    assert "\n" not in said


def test_another_system_and_another_c_library_have_no_huge_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names what is there in place of Linux, or what is missing."""
    with_huge_pages(monkeypatch, tmp_path)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert "glibc" in facts.huge_pages_missing()
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "Darwin" in facts.huge_pages_missing()


def test_a_machine_with_huge_pages_has_them_as_its_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without them memory is retained in ordinary pages."""
    with_huge_pages(monkeypatch, tmp_path)
    assert facts.default_allocator() == HUGE
    with_huge_pages(monkeypatch, tmp_path, "always madvise [never]")
    assert facts.default_allocator() == RETAINED


def test_the_installed_torch_is_known_without_importing_it() -> None:
    """Its own file says its version."""
    import importlib.metadata

    assert torch_version().partition("+")[0] == importlib.metadata.version("torch").partition("+")[0]


@pytest.mark.parametrize(
    ("names", "cuda", "expected"),
    [
        ([], "13.0", []),
        (["H100"], "", []),
        (["H100"], "13.0", ["cuda"]),
        (["H100", "H100", "L4"], "13.0", ["cuda", "cuda:2"]),
    ],
)
def test_one_device_of_each_kind_is_available(
    names: list[str], cuda: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If torch was built for them."""
    monkeypatch.setattr(facts, "gpus", lambda: names)
    monkeypatch.setattr(facts, "torch_cuda", lambda: cuda)
    assert available_devices() == expected


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_devices_are_none(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CUDA_VISIBLE_DEVICES says it to torch too."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert gpus() == []


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what is remembered in a file of its own."""
    path = tmp_path / "results" / "selfcheck.json"
    monkeypatch.setattr(facts, "SELFCHECK_PATH", path)
    return path


def test_what_was_found_is_recalled_in_the_same_environment_alone() -> None:
    """Each environment has its own finding, the latest."""
    assert facts.recall_selfcheck("one") is None
    facts.remember_selfcheck("one", {**FOUND, "processes": 5})
    facts.remember_selfcheck("two", FOUND)
    facts.remember_selfcheck("one", FOUND)
    assert facts.recall_selfcheck("one") == facts.recall_selfcheck("two") == FOUND
    assert facts.recall_selfcheck("three") is None


@pytest.mark.parametrize("content", ["", "[]", "no JSON", '{"one": 1}'])
def test_a_file_that_is_none_of_ours_is_as_good_as_none(content: str, path: Path) -> None:
    """It is replaced by the next self-check, and stops no run."""
    path.parent.mkdir()
    path.write_text(content)
    assert facts.recall_selfcheck("one") is None
    facts.remember_selfcheck("one", FOUND)
    assert json.loads(path.read_text())["one"] == FOUND


def test_a_run_carries_it_in_its_state() -> None:
    """It is there once a self-check ran in this environment, and plays no part in the identity."""
    before = facts.observe(WITHOUT_GPU, {}, {})
    assert "selfcheck" not in before.state
    facts.remember_selfcheck(before.env_id, FOUND)
    after = facts.observe(WITHOUT_GPU, {}, {})
    assert after.state["selfcheck"] == FOUND
    assert after.env_id == before.env_id
    assert "selfcheck" not in facts.observe({**WITHOUT_GPU, "torch": "2.14.0"}, {}, {}).state


SEVERAL: dict[str, Any] = {"detectable": {"1": 0.012, "4": 0.05}, "processes": 10}


def test_a_self_check_is_read() -> None:
    """The detectable change by threads that have one, with the processes; what an older suite added is passed over."""
    assert detectable(of(SEVERAL)) == Detectable({1: 0.012, 4: 0.05}, processes=10)
    assert detectable(of({**SEVERAL, "false_alarms": 0, "rows": 54})) == detectable(of(SEVERAL))
    some = detectable(of({**SEVERAL, "detectable": {"1": 0.012, "2": None, "3": float("nan"), "4": 0}}))
    assert some
    assert some.share == {1: 0.012}


@pytest.mark.parametrize(
    "found",
    [
        None,
        "all is well",
        [],
        {},
        {**SEVERAL, "detectable": 0.012},
        {**SEVERAL, "detectable": {}},
        {**SEVERAL, "detectable": {"one": 0.012}},
        {**SEVERAL, "detectable": {"1": "a lot"}},
        {**SEVERAL, "processes": None},
        {"detectable": {"1": 0.012}},
    ],
)
def test_what_cannot_be_understood_is_none(found: Any) -> None:
    """Another suite's self-check, or one that was cut short, is passed over; most runs have none."""
    assert detectable(of(found)) is None
    assert detectable(None) is None
    assert detectable(Environment({}, {}, {})) is None


def of(found: Any) -> Environment:
    """Return an environment with this as its self-check."""
    return Environment({}, {"selfcheck": found}, {})


def test_what_runs_differ_by_is_read() -> None:
    """By the number of threads, with its degrees of freedom; an older self-check lacks it."""
    assert between_run_scatter(of({**SEVERAL, "between": {"1": [0.01, 4.2], "2": [0, 9]}})) == {
        1: (0.01, 4.2),
        2: (0.0, 9.0),
    }
    assert between_run_scatter(of(SEVERAL)) == between_run_scatter(None) == {}


@pytest.mark.parametrize(
    "wrong", [3, [], {"one": [0.1, 2]}, {"1": 0.1}, {"1": ["a", 2]}, {"1": [float("nan"), 2]}, {"1": [-1, 2]}]
)
def test_what_can_not_be_read_is_not_known(wrong: Any) -> None:
    """Runs can be compared without it."""
    assert between_run_scatter(of({**SEVERAL, "between": wrong})) == {}
