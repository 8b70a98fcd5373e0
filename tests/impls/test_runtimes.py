"""Other runtimes: each computes the layer's function, in its precision, and reports its kernels."""

import json
import subprocess
import sys

import pytest
import torch

import impls
from impls.layers.vit import ViTAttention
from tests.impls.reference import INSTALLED, error, normal
from tests.own_runtime import NumPy

CASES = {
    "openvino": ("openvino/float32/vit/plain", "openvino/float32/conv/plain",
                 "openvino/bfloat16/core/causal context", "openvino/float32/attention/many"),
    "onnxruntime": ("onnxruntime/float32/vit/causal", "onnxruntime/float32/conv/plain",
                    "onnxruntime/bfloat16/vit/plain", "onnxruntime/float32/attention/many"),
}  # fmt: skip
"""The cases of each runtime here; maps of conv are large enough for several threads."""

REPORTED = {"openvino": "Softmax+MatMul", "onnxruntime": "MatMul"}
"""A part of each one's report on its first case."""


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.skipif(not INSTALLED, reason="needs openvino or onnxruntime")
def test_runtimes_compute_what_the_layer_does() -> None:
    """Outputs are as near to float64 as torch's own, for two inputs, and in the precision of the point.

    A runtime reports its kernels, and leaves the process unchanged. Without kernels for bfloat16 it refuses it.
    All have one process of their own, because they start threads there.
    """
    cases = [case for name in INSTALLED for case in CASES[name]]
    command = [sys.executable, "-m", "tests.impls.runtimes_child", *cases]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    reports = dict(zip(cases, map(json.loads, lines), strict=True))
    for case, report in reports.items():
        dtype = case.split("/")[1]
        if dtype == "bfloat16" and "unsupported" in report:
            assert "bfloat16" in report["unsupported"] or "Could not find an implementation" in report["unsupported"]
            continue
        assert max(report["errors"]) < max(8 * report["of_eager"], 4 * torch.finfo(getattr(torch, dtype)).eps), case
        assert report["dtype"] == f"torch.{dtype}"
        assert report["operators"]
        assert report["threads"] == 1  # one thread was asked for
        assert dtype != "float32" or not any("bf" in operator for operator in report["operators"])
        assert report["changes"] == "", case
    for name in INSTALLED:
        assert any(REPORTED[name] in operator for operator in reports[CASES[name][0]]["operators"])


def test_a_runtime_is_built_once_for_each_form() -> None:
    """The runtime is built at the first input, again for another shape, and refuses gradients."""
    layer, forms = ViTAttention(8, 8, 2), []

    class Counted(NumPy):
        def compile(self, *xs: torch.Tensor) -> None:
            forms.append(tuple(xs[0].shape))
            super().compile(*xs)

    runtime = Counted(layer)
    with torch.inference_mode():
        for tokens in (5, 5, 7):
            x = normal(2, tokens, 8)
            assert error(runtime(x), layer, x) < 5e-5
    assert forms == [(2, 5, 8), (2, 7, 8)]
    with pytest.raises(impls.Unsupported, match="NumPy is used only for inference"):
        runtime(normal(2, 9, 8))
