"""The speed probe: fixed work in a point's dtype."""

import pytest
import torch

from bench.measure.speed_probe import COPY_BYTES, SIDES, SpeedProbe
from tests.points import point


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_probe_multiplies_in_the_points_dtype_and_copies(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are timed after a call each, so that data are in the caches."""
    products: list[tuple[torch.dtype, torch.Size]] = []
    real = torch.mm

    def mm(factor: torch.Tensor, other: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        products.append((factor.dtype, factor.shape))
        return real(factor, other, out=out)

    monkeypatch.setattr(torch, "mm", mm)
    probe = SpeedProbe(point(dtype=dtype))
    products.clear()
    times_s = probe.times_s()
    assert products == [(getattr(torch, dtype), (SIDES["cpu"], SIDES["cpu"]))] * 2
    assert all(time_s > 0 for time_s in times_s)


def test_the_product_fits_into_the_second_cache_and_the_copy_does_not_fit_into_the_first() -> None:
    """Caches of a core: 48 KiB and 2 MiB on the machine of the published runs, 1 MiB on common older ones."""
    assert 2 * 4 * SIDES["cpu"] ** 2 < 1 << 20
    assert 2 * COPY_BYTES["cpu"] > 1 << 21
