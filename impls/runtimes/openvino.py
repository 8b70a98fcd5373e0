"""OpenVINO, on the CPU."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from impls.contract import Unsupported
from impls.runtimes import DTYPES, Operator, Runtime

PRECISIONS = {getattr(torch, name): short for short, name in DTYPES.items()}

NO_WORK = ("Input", "Const", "Output", "Reshape")
"""Layers of OpenVINO's runtime model that only reshape tensors or hold values."""

HINT = "INFERENCE_PRECISION_HINT"


class OpenVINO(Runtime):
    """A layer in OpenVINO, in the precision of its inputs; inputs and outputs are not copied.

    By default OpenVINO computes in bfloat16 if the CPU can, even for float32.
    Source: OpenVINO documentation, "Precision Control" and "CPU Device".
    """

    title = "OpenVINO"

    def compile(self, *xs: Tensor) -> None:
        """Convert the layer for inputs like these, and compile it for the point's threads."""
        x = xs[0]
        if x.device.type != "cpu":
            raise Unsupported(f"OpenVINO has no device {x.device.type}")
        self._openvino = ov = _openvino()
        wanted = PRECISIONS[x.dtype]
        options = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "NUM_STREAMS": 1, HINT: wanted}
        model = ov.convert_model(self.layer, example_input=xs)
        model.reshape({number: list(each.shape) for number, each in enumerate(xs)})
        self._compiled = ov.Core().compile_model(model, "CPU", options)
        chosen = self._compiled.get_property(HINT).get_type_name()
        if chosen != wanted:
            raise Unsupported(f"OpenVINO computes in {DTYPES.get(chosen, chosen)} on this CPU, not in {x.dtype}")
        self._request: Any = None

    def run(self, *xs: Tensor) -> Tensor:
        """Return the output, which the next call overwrites."""
        if self._request is None:  # in the first call, because it allocates the memory of calls
            self._request = self._compiled.create_infer_request()
        given = [self._shared(x.contiguous()) for x in xs]  # kept alive during the call
        for number, tensor in enumerate(given):
            self._request.set_input_tensor(number, tensor)
        self._request.infer()
        result = self._request.get_output_tensor().data
        is_bfloat16 = xs[0].dtype is torch.bfloat16
        return torch.from_numpy(result.view(np.int16)).view(xs[0].dtype) if is_bfloat16 else torch.from_numpy(result)

    def _shared(self, x: Tensor) -> Any:
        """Return an OpenVINO tensor that shares the memory of x."""
        ov = self._openvino
        if x.dtype is torch.bfloat16:  # numpy has no such type
            return ov.Tensor(x.view(torch.int16).numpy(), list(x.shape), ov.Type.bf16)
        return ov.Tensor(x.numpy(), shared_memory=True)

    def operators(self) -> Sequence[Operator]:
        """Return the operators of OpenVINO's runtime model; a Subgraph names the operations that it has fused."""
        operators = []
        for node in self._compiled.get_runtime_model().get_ordered_ops():
            info = {key: value.astype(str) for key, value in node.get_rt_info().items() if hasattr(value, "astype")}
            kind = info.get("layerType", "")
            if kind and kind not in NO_WORK:
                fused = f"({_operations(info.get('originalLayersNames', ''))})" if kind == "Subgraph" else ""
                name = f"{kind}{fused} {info.get('primitiveType', '')}".strip()
                operators.append(Operator(name, DTYPES.get(info.get("runtimePrecision", ""), "")))
        return operators


def _openvino() -> Any:
    # OpenVINO sends usage data to its vendor unless this package is missing
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None: importing it fails
    import openvino

    return openvino


def _operations(names: str) -> str:
    """Return the kinds of operations in a list such as `MatMul_7,Softmax_8,aten::matmul/MatMul_1`."""
    kinds = (re.sub(r"_\d+$", "", name.rpartition("/")[2]) for name in names.split(",") if name)
    return "+".join(kinds)
