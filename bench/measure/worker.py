"""The work of a process that measures one case: the requests that it serves."""

from pathlib import Path
from typing import Any

import torch

import impls
from bench.measure import facts, failure, gpu_state, look, system_memory
from bench.measure.channel import Channel, serve
from bench.measure.measured_case import MeasuredCase, Request
from bench.plan.case import Case, Point
from impls.catalogue import parse


class Worker:
    """Serves `check`, `look`, `memory`, and then `prepare`, `begin`, `sample`, `keep` and `finish` for one case."""

    def __init__(self) -> None:
        self._case: MeasuredCase | None = None

    def check(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Reply with facts about machine and packages, and a line for each implementation or GPU that can't be used.

        Only the implementations that are `needed` are imported for it.
        """
        mistakes = [
            f"{device} must be in compute mode DEFAULT, because each implementation has a process of its own; "
            "it is in EXCLUSIVE_PROCESS. An administrator can run: nvidia-smi --compute-mode=DEFAULT"
            for device in request["devices"]
            if gpu_state.is_exclusive(device)
        ]
        for name in request["needed"]:
            try:
                impls.resolve(parse(name).base)
            except impls.Unresolved as error:
                mistakes.append(str(error))
        runtimes = impls.versions(request["implementations"])
        return {"mistakes": mistakes, "facts": facts.torch_facts(), "runtimes": runtimes}

    def look(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Reply with what is seen at a model, and how the look ended."""
        outcome = failure.Outcome()
        seen: dict[str, Any] = {}
        with failure.caught(outcome, request["point"]["device"]):
            seen = look.look(request, channel)
        return {"status": outcome.status, "detail": outcome.detail, "seen": seen}

    def memory(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Reply with the peak memory of one call of a case, as the operating system sees it."""
        channel.announce("memory")
        case = Case(Point(**request["point"]), request["implementation"])
        return {"peak_bytes": system_memory.of_case(case)}

    def prepare(self, request: dict[str, Any], channel: Channel) -> dict[str, Any]:
        """Prepare a case; reply with its outcome so far."""
        values = {
            **request["case"],
            "point": Point(**request["case"]["point"]),
            "folder": Path(request["case"]["folder"]),
        }
        self._case = case = MeasuredCase(Request(**values), channel)
        with failure.caught(case.outcome, case.request.point.device):
            case.prepare()
        is_on_gpu = case.request.point.device != "cpu" and torch.cuda.is_initialized()
        free_bytes = torch.cuda.mem_get_info()[0] if is_on_gpu else None
        call_s = case.call_s if case.outcome.status == "ok" else None
        facts = {"free_bytes": free_bytes, "call_s": call_s, "remark": case.remark, "reuses": case.reuses}
        facts["import_s"] = case.import_s
        return {**case.reply(), **facts}

    def begin(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Begin the rounds; reply with the outcome."""
        case = self._prepared
        with failure.caught(case.outcome, case.request.point.device):
            case.begin(request["numbers"], request["timings"], request["parts"])
        return case.reply()

    def sample(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Take one sample; reply with it, or with the outcome if the case has ended."""
        case = self._prepared
        with failure.caught(case.outcome, case.request.point.device):
            return {**case.sample(request["keys"], request["core"]), "status": "ok"}
        return case.reply()

    def keep(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """Keep parts of the last sample's outputs; reply with the outcome."""
        case = self._prepared
        with failure.caught(case.outcome, case.request.point.device):
            case.keep(request["parts"], request.get("whole"))
        return case.reply()

    def finish(self, request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
        """End the rounds; reply with the outcome."""
        case = self._prepared
        with failure.caught(case.outcome, case.request.point.device):
            case.finish(request["call_s"], request["core"])
        return case.reply()

    @property
    def _prepared(self) -> MeasuredCase:
        assert self._case is not None, "the case was not prepared"
        return self._case


def work(channel: Channel) -> None:
    """Serve the requests of a worker until the parent closes the pipe."""
    worker = Worker()
    of_case = (worker.prepare, worker.begin, worker.sample, worker.keep, worker.finish)
    requests = (worker.check, worker.look, worker.memory, *of_case)
    serve({request.__name__: request for request in requests}, channel)
