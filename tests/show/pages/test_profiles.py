"""A run's profiles as one page."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bench.analyse.profile import distortion
from bench.plan.case import Case
from bench.show.pages.profiles import MOST_ROWS, page, write
from bench.store.profile import Kernel, Profile, ProfiledOperator
from tests.make.points import vit_s
from tests.make.profiles import MIB, by_graph, profile, stepwise
from tests.make.results import results
from tests.profiling.gpu_trace import eager_profile
from tests.refusals import refusal

TEMPLATED = "void at::native::elementwise_kernel<4, " + "at::native::Functor<float, " * 30 + ">>>(int, char*)"

RESULTS = results([Case(vit_s(), "sdpa")])
"""The results of the run."""

HOSTILE = "<script>alert('x')</script>\" onload=\"alert(1)"


class Page(HTMLParser):
    """The elements and words of a page; an element that is closed twice or never is a fault."""

    VOID = frozenset({"meta", "link", "input", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.open: list[str] = []
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note that an element ends, which must be the last that began."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note what can be read."""
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that can be read, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def every(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def drawn(*profiles: Profile) -> Page:
    """Return the page of these profiles."""
    return Page(page(profiles, "a run", RESULTS))


def on_gpu(*, name: str = "aten::mul", kernel: str = "gemm", kernels: int = 0) -> Profile:
    """Return the profile of a case whose one operator launches kernels of one name."""
    operators = (ProfiledOperator(name, 2, 1e-3, 3 * MIB, device_s=4e-3, kernels=(kernel,)),)
    ran = tuple(Kernel(kernel, "stream 7", i * 1e-5, 1e-5) for i in range(kernels))
    return dataclasses.replace(profile(operators=operators, device="cuda", timing="device-cold"), kernels=ran)


def test_a_case_is_told_in_full() -> None:
    """Point, latency, overhead, a bar of the stages, their table and that of operators are all there."""
    shown = drawn(stepwise())
    facts = ("vit · float32 · inference · B=8 · N=197 · C=384 · H=6 · 1 thread", "10.5 ms", "11.0 ms (+5.0%)")
    told = (*facts, "N² stages 53%", "stages 10.3 ms of 10.5 ms; residual 200 µs (+1.9%)", "operator")
    assert [words for words in told if words not in shown.text] == []
    titles = [each["title"] for each in shown.every("i") if "title" in each]
    assert (len(titles), titles[0], titles[-1]) == (10, "qkv projection 3.00 ms", "residual 200 µs")
    assert "gap before" not in shown.text


def test_a_graph_is_told_by_its_lines_and_its_cores() -> None:
    """Each operator stands with its line; without lines there is no column of them."""
    text = drawn(by_graph()).text
    assert "aten::bmm layer.py:11" in text
    assert "attention cores 75%" in text
    assert " line " not in drawn(stepwise()).text.partition("operator")[2]


def test_a_call_on_a_gpu_is_told_by_its_kernels() -> None:
    """The device's time leads, and kernels stand in their order; those that have no room are one row."""
    text = drawn(eager_profile()).text
    headings = ("GPU time", "host time", "gap before")
    assert [words for words in headings if words not in text] == []
    assert text.index("gap before") < text.index("gemm_proj 76.0 µs 8.00 µs 1.00 µs")
    assert "5 later kernels" in drawn(on_gpu(kernels=MOST_ROWS + 5)).text
    assert "GPU time" not in drawn(profile()).text


def test_warnings_come_before_what_they_warn_of() -> None:
    """From a fifth of difference on times aren't to be trusted; a control that differs is named before the cases."""
    for profiled_s, is_warned in ((1.19, False), (1.21, True), (0.81, False), (0.79, True)):
        other = dataclasses.replace(profile(), timed_s=1.0, profiled_s=profiled_s)
        assert distortion(other) in drawn(other).text
        assert bool(distortion(other)) == is_warned
    text = Page(page([profile()], "a run", RESULTS, "identical code differs")).text
    assert text.index("In this run identical code differs.") < text.index("How to read this page")
    assert "In this run" not in drawn(profile()).text


def test_cases_stand_below_their_point_and_long_names_are_folded() -> None:
    """A point has its heading, the fastest case comes first, and a long name stands behind a short one."""
    slow, quick = stepwise(num_tokens=577), profile(num_tokens=577)
    text = drawn(slow, profile("eager", num_tokens=50), quick).text
    places = [text.index(word) for word in ("N=577", " sdpa ", " stepwise ", "N=50", " eager ")]
    assert places == sorted(places)
    shown = drawn(on_gpu(kernel=TEMPLATED, kernels=3))
    assert shown.text.count(TEMPLATED) == shown.text.count(f"elementwise_kernel<…> {TEMPLATED}") == 4


@pytest.mark.parametrize("where", ["operator", "kernel", "implementation", "title"])
def test_a_hostile_name_is_only_text(where: str) -> None:
    """Whatever somebody calls a kernel, a stage or a run, it is read and never executed."""
    hostile = {
        "operator": on_gpu(name=HOSTILE),
        "kernel": on_gpu(kernel=HOSTILE, kernels=1),
        "implementation": profile(HOSTILE),
    }.get(where, profile())
    shown = Page(page([hostile], HOSTILE if where == "title" else "a run", RESULTS))
    assert "<script>alert('x')</script>" in shown.text
    assert len(shown.every("script")) == 1
    assert not any("onload" in attributes for _, attributes in shown.elements)


def test_nothing_is_loaded_from_elsewhere() -> None:
    """The page is one file: it refers to no other, and forbids the browser to load any. No two elements share an id."""
    shown = drawn(stepwise(mode="train"), profile(), stepwise(num_tokens=577))
    assert not re.search(r"""(src|href)="(?!#|data:)|url\(|@import""", shown.source)
    assert any((meta.get("content") or "").startswith("default-src 'none'") for meta in shown.every("meta"))
    ids = [attributes["id"] for _, attributes in shown.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(shown.source) < 100_000  # it has no charts, so it needs no Vega


def test_the_page_lies_in_its_run(tmp_path: Path) -> None:
    """The page is a file of the run, called by its name; without profiles the refusal says what to do."""
    path = write([profile()], tmp_path, RESULTS)
    assert path.parent == tmp_path
    assert f"Profiles of {tmp_path.name}" in path.read_text(encoding="utf-8")
    assert "-m bench profile" in refusal(write, [], tmp_path, RESULTS)
