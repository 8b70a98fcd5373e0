"""A run's profiles as one page."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.profile import distortion
from bench.show.pages.profiles import MOST_SPANS, page, write
from bench.store.profile import KERNEL, OPERATOR, Block, Profile, ProfiledOperator, Span
from tests.make.profiles import MIB, by_graph, profile, stepwise
from tests.make.runs import data_of, unpacked
from tests.profiling.gpu_trace import eager_profile
from tests.refusals import refusal

pytestmark = pytest.mark.usefixtures("without_vega")

TEMPLATED = "void at::native::elementwise_kernel<4, " + "at::native::Functor<float, " * 30 + ">>>(int, char*)"
VEGA = 900_000
"""More than the bytes of Vega's JavaScript, which these tests leave out."""

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

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Note that an element ends, which must be the last that began."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note what can be read."""
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def charts(self) -> dict[str, Any]:
        """The rows of each chart with what they show, by case and kind."""
        return dict(json.loads(unpacked(data_of(self.source)["cases"])))

    @property
    def text(self) -> str:
        """All that can be read, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def every(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def drawn(*profiles: Profile) -> Page:
    """Return the page of these profiles."""
    return Page(page(profiles, "a run"))


def on_gpu(*, name: str = "aten::mul", kernel: str = "gemm", spans: int = 0) -> Profile:
    """Return the profile of a case whose one operator launches one kernel."""
    operators = (ProfiledOperator(name, 2, 1e-3, 3 * MIB, device_s=4e-3, kernels=(kernel,)),)
    own = tuple(Span(kernel, KERNEL, "stream 7", 0, i * 1e-5, 1e-5) for i in range(spans))
    return dataclasses.replace(profile(operators=operators, device="cuda", timing="device-cold"), spans=own)


def large(number: int) -> Profile:
    """Return a training call as long as real ones get: hundreds of spans, blocks, and operators with long names."""
    spans = tuple(
        Span(f"aten::some_operator_with_a_name_{i % 60}", OPERATOR, "host", i % 7, i * 1e-5, 1e-4) for i in range(700)
    )
    blocks = tuple(
        Block((i % 9 + 1) * MIB, f"aten::operator_{i % 30}", "scores", i * 1e-5, i * 1e-5 + 1e-3) for i in range(400)
    )
    operators = tuple(
        ProfiledOperator(f"aten::operator_{i}", 3.5, 1e-4, MIB, 2e-4, 1e9, (f"void kernel_{i}<{'float, ' * 80}>",))
        for i in range(80)
    )
    short = stepwise(mode="train", num_tokens=100 + number)
    return dataclasses.replace(short, spans=(*short.spans, *spans), blocks=blocks, operators=operators)


def test_a_case_is_told_in_full() -> None:
    """Point, latency, overhead, stages, residual, timeline, memory, peak and operators of a case are all there."""
    text = drawn(stepwise()).text
    facts = ("vit · float32 · inference · B=8 · N=197 · C=384 · H=6 · 1 thread", "10.5 ms", "11.0 ms (+5.0%)")
    sums = ("10.3 ms of the whole 10.5 ms", "200 µs (+1.9%)", "N² stages 53%")
    headings = ("Stages", "Timeline of one call", "Memory over the same call", "The peak explained", "Operators")
    assert [words for words in (*facts, *sums, *headings) if words not in text] == []
    train = drawn(stepwise(mode="train")).text
    assert train.index("forward, 10.3 ms") < train.index("backward, 10.3 ms")
    below_zero = drawn(stepwise(residual_s=-0.5e-3)).text
    assert "residual is -500 µs" in below_zero
    assert "below zero because" in below_zero


def test_a_graph_is_told_by_its_lines_and_its_cores() -> None:
    """Each operator stands with its line; without lines there is no column of them."""
    text = drawn(by_graph()).text
    assert "aten::bmm layer.py:11" in text
    assert text.count("attention cores 75%") == 2
    assert ["line" in [each.get("class") for each in drawn(of).every("td")] for of in (by_graph(), stepwise())] == [
        True,
        False,
    ]


def test_a_call_on_a_gpu_is_told_by_its_kernels() -> None:
    """Stages are set against all kernels, which stand in their order, and the host's time against nothing."""
    told = drawn(eager_profile())
    text = told.text
    assert "75.0 µs of all kernels' 77.0 µs; the residual is 2.00 µs (+2.6%)" in text
    assert "11 kernels in 87.0 µs of one call under the profiler; in the gaps, 10.0 µs (11%)" in text
    assert text.index("Kernels in their order") < text.index("gemm_proj 76.0 µs 8.00 µs 1.00 µs stream 7")
    assert "on the host" not in text
    stages = told.charts["case-0-0"]["stages"]["rows"]
    assert max(stages["end"]) == pytest.approx(77e-6)


def test_the_peak_is_explained_in_words() -> None:
    """When it is, how much is alive, and where most of it was allocated."""
    blocks = (
        Block(6 * MIB, "aten::bmm", "scores", 1e-3, None),
        Block(3 * MIB, "aten::_softmax", "softmax", 2e-3, 4e-3),
        Block(1 * MIB, "aten::mm", "qkv projection", 0.0, None),
        Block(9 * MIB, "aten::mm", "qkv projection", 5e-4, 8e-4),
    )
    text = drawn(dataclasses.replace(stepwise(), blocks=blocks)).text
    assert "At its peak, 500 µs into the call, 10.0 MiB are alive in 2 blocks." in text

    text = drawn(dataclasses.replace(stepwise(), blocks=blocks[:3])).text
    assert "At its peak, 2.00 ms into the call, 10.0 MiB are alive in 3 blocks." in text
    assert "allocated in scores (60%), softmax (30%) and qkv projection (10%), 90% of it in the N² stages." in text


def test_warnings_come_before_what_they_warn_of() -> None:
    """From a fifth of difference on times aren't to be trusted; a control that differs is named before the cases."""
    for profiled_s, is_warned in ((1.19, False), (1.21, True), (0.81, False), (0.79, True)):
        other = dataclasses.replace(profile(), timed_s=1.0, profiled_s=profiled_s)
        assert distortion(other) in drawn(other).text
        assert bool(distortion(other)) == is_warned
    text = Page(page([profile()], "a run", "identical code differs")).text
    assert text.index("In this run identical code differs.") < text.index("How to read this page")
    assert "In this run" not in drawn(profile()).text


def test_a_gpu_has_its_own_times_and_what_is_lacking_is_said() -> None:
    """On a GPU the device's time leads, with each operator's kernels; what a profile lacks is no empty picture."""
    text = drawn(on_gpu(kernel="sgemm_128x64_tn")).text
    assert "GPU time" in text
    assert "host self time" in text
    assert "sgemm_128x64_tn" in text
    assert "GPU time" not in drawn(profile()).text
    shown = drawn(dataclasses.replace(profile(), spans=(), blocks=()))
    assert "No call was kept whole." in shown.text
    assert "This call allocated nothing." in shown.text
    assert shown.charts == {"case-0-0": {}}
    assert [each for each in shown.every("div") if "data-drawn" in each] == []


def test_cases_are_listed_by_point_and_long_names_stand_once() -> None:
    """The list has a heading for each point; a long name is a link to its full one, which stands once in the page."""
    slow, quick = stepwise(num_tokens=577), profile(num_tokens=577)
    text = drawn(slow, profile("eager", num_tokens=50), quick).text
    listed = text[: text.index("vit ·")]
    places = [listed.index(word) for word in ("N=577", "sdpa", "stepwise", "N=50", "eager")]
    assert places == sorted(places)
    shown = drawn(on_gpu(kernel=TEMPLATED, spans=50), on_gpu(kernel=TEMPLATED))
    assert shown.text.count(TEMPLATED) == 1
    assert str(shown.charts).count("elementwise_kernel<…>") > 50
    (target,) = {link["href"] for link in shown.every("a") if link.get("class") == "long"}
    assert target is not None
    assert target.removeprefix("#") in [item.get("id") for item in shown.every("li")]


@pytest.mark.parametrize("where", ["operator", "kernel", "span", "block", "implementation", "title"])
def test_a_hostile_name_is_only_text(where: str) -> None:
    """Whatever somebody calls a kernel, a stage or a run, it is read and never executed."""
    hostile = {
        "operator": on_gpu(name=HOSTILE),
        "kernel": on_gpu(kernel=HOSTILE),
        "span": dataclasses.replace(profile(), spans=(Span(HOSTILE, OPERATOR, HOSTILE, 0, 0.0, 1.0),)),
        "block": dataclasses.replace(profile(), blocks=(Block(MIB, HOSTILE, HOSTILE, 0.0, None),)),
        "implementation": profile(HOSTILE),
    }.get(where, profile())
    shown = Page(page([hostile], HOSTILE if where == "title" else "a run"))
    read = str(shown.charts) if where == "span" else shown.text
    assert "<script>alert('x')</script>" in read.replace("\\'", "'")
    assert len(shown.every("script")) == 3
    assert not any("onload" in attributes for _, attributes in shown.elements)


def test_every_picture_has_a_name_and_nothing_is_loaded_from_elsewhere() -> None:
    """A chart says to those who can't see it what it shows; no two elements share an id.

    The page is one file: it refers to no other, and forbids the browser to load any.
    """
    shown = drawn(stepwise(mode="train"), profile(), stepwise(num_tokens=577))
    assert not re.search(r"""(src|href)="(?!#|data:)|url\(|@import""", shown.source)
    assert any((meta.get("content") or "").startswith("default-src 'none'") for meta in shown.every("meta"))
    ids = [attributes["id"] for _, attributes in shown.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    pictures = [chart for case in shown.charts.values() for chart in case.values()]
    assert len(pictures) == len([each for each in shown.every("div") if "data-drawn" in each]) == 8
    assert all("stepwise" in chart["description"] or "sdpa" in chart["description"] for chart in pictures)


@pytest.mark.slow
def test_a_page_of_36_training_cases_is_below_2_megabytes() -> None:
    """Timelines of many cases are drawn in fewer spans, and the page says how many were left out.

    A timeline alone on its page has as many spans as can be told from each other.
    """
    text = page([large(number) for number in range(36)], "a run")
    assert len(text.encode()) < 2_000_000 - VEGA
    assert re.search(r"\d+ spans are too short to be drawn", text)

    assert len(drawn(large(0)).charts["case-0-0"]["timeline"]["rows"]["name"]) > MOST_SPANS


def test_the_page_lies_in_its_run(tmp_path: Path) -> None:
    """The page is a file of the run, called by its name; without profiles the refusal says what to do."""
    path = write([profile()], tmp_path)
    assert path.parent == tmp_path
    assert f"Profiles of {tmp_path.name}" in path.read_text(encoding="utf-8")
    assert "-m bench profile" in refusal(write, [], tmp_path)
