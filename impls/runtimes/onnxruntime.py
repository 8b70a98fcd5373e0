"""ONNX Runtime: the layer, exported as it is."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from impls.attend import eager
from impls.contract import Unsupported
from impls.runtimes import Operator, Runtime

NO_WORK = ("Reshape", "Squeeze", "Unsqueeze", "Identity", "Constant", "Shape")
"""Operators that only reshape tensors or hold values."""

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class ONNXRuntime(Runtime):
    """A layer in ONNX Runtime; inputs and outputs are not copied.

    Its threads sleep when idle, so that they don't slow other processes.
    Source: ONNX Runtime documentation, "Thread management" and "I/O Binding".
    """

    title = "ONNX Runtime"

    def compile(self, *xs: Tensor) -> None:
        """Export the layer for inputs like these, and optimise the graph."""
        import onnx
        import onnxruntime as ort
        from onnxruntime.capi import onnxruntime_pybind11_state as states

        x = xs[0]
        provider = PROVIDERS.get(x.device.type, x.device.type)
        if provider not in ort.get_available_providers():
            raise Unsupported(f"this ONNX Runtime has no {provider}; pip install onnxruntime-gpu for CUDA")
        module = eager.adapt(self.layer)
        assert isinstance(module, nn.Module)
        exported = torch.onnx.export(module, xs, dynamo=True, verbose=False)
        assert exported is not None
        with tempfile.TemporaryDirectory() as folder:
            optimised = Path(folder) / "optimised.onnx"
            try:
                self._session = ort.InferenceSession(
                    exported.model_proto.SerializeToString(), _options(ort, optimised), providers=[provider]
                )
            except (states.NotImplemented, states.InvalidGraph) as error:  # no kernel for this dtype
                raise Unsupported(f"ONNX Runtime: {str(error).split(' : ')[-1]}") from None
            self._graph = onnx.load(str(optimised), load_external_data=False).graph
        elements = {each.name: each.type.tensor_type.elem_type for each in self._graph.input}
        self._inputs = [(each.name, elements[each.name]) for each in self._session.get_inputs()]
        self._result = torch.empty(tuple(self._session.get_outputs()[0].shape), dtype=x.dtype, device=x.device)
        self._binding = self._session.io_binding()
        output = self._graph.output[0].type.tensor_type.elem_type
        _bind(self._binding.bind_output, self._session.get_outputs()[0].name, output, self._result)

    def run(self, *xs: Tensor) -> Tensor:
        """Return the output, which the next call overwrites."""
        given = [x.contiguous() for x in xs]  # kept alive during the call
        for (name, element), tensor in zip(self._inputs, given, strict=True):
            _bind(self._binding.bind_input, name, element, tensor)
        self._session.run_with_iobinding(self._binding)
        return self._result

    def operators(self) -> Sequence[Operator]:
        """Return the operators of the optimised graph."""
        from onnx.helper import tensor_dtype_to_np_dtype

        values = [*self._graph.value_info, *self._graph.output]
        kinds = {value.name: value.type.tensor_type.elem_type for value in values if value.type.tensor_type.elem_type}
        dtypes = {name: str(tensor_dtype_to_np_dtype(kind)) for name, kind in kinds.items()}
        work = [node for node in self._graph.node if node.op_type not in NO_WORK]
        return [Operator(node.op_type, dtypes.get(node.output[0], "")) for node in work]


def _bind(bind: Any, name: str, element: int, tensor: Tensor) -> None:
    bind(name, tensor.device.type, tensor.device.index or 0, element, tuple(tensor.shape), tensor.data_ptr())


def _options(ort: Any, optimised: Path) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # it warns that the optimised graph is specific to this CPU
    options.optimized_model_filepath = str(optimised)
    return options
