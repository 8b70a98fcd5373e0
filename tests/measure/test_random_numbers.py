"""Random numbers by a key, as a GPU draws them; the CPU computes them here with the same operations."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from bench.measure import random_numbers
from bench.measure.devices import device

CPU = torch.device("cpu")

BITS = 1 << 64


def normal(key: int, number: int = 200_000) -> Tensor:
    """Return normal numbers of a key with a standard deviation of 2.5."""
    numbers = torch.empty(number)
    random_numbers.write_normal(key, 2.5, numbers)
    return numbers


def pairs(key: int, number: int = 200_000, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Return radii and waves of a key."""
    radii, waves = torch.empty((2, number), dtype=dtype)
    random_numbers.write_pairs(key, 2.5, radii, waves)
    return radii, waves


def test_bits_are_those_of_splitmix64() -> None:
    """The first five of 1234567, as they are published with the generator."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [each % BITS for each in random_numbers.bits(1234567, slice(0, 5), CPU).tolist()] == known


@pytest.mark.parametrize(("key", "place"), [(0, 1 << 31), (2**53 - 1, 3_000_000_000), (5, 262_144)])
def test_bits_follow_from_their_place(key: int, place: int) -> None:
    """Far from the beginning too, where whole numbers of 32 bits end: as Python's own compute them."""
    state = (key + (place + 1) * 0x9E3779B97F4A7C15) % BITS
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % BITS
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % BITS
    assert random_numbers.bits(key, slice(place, place + 1), CPU).item() % BITS == state ^ (state >> 31)


def test_numbers_are_normal() -> None:
    """So are the products of any window of radii with any window of waves."""
    radii, waves = pairs(5)
    for numbers in (normal(1), normal(2**53 - 1), radii * waves, radii[77:] * waves[:-77]):
        assert stats.kstest(numbers.double().numpy(), "norm", (0, 2.5)).pvalue > 1e-3
        scaled = numbers.double() / 2.5
        moments = [float((scaled**power).mean()) for power in (1, 2, 3, 4)]
        assert moments == pytest.approx([0, 1, 0, 3], abs=0.06)  # five standard errors of the fourth


def test_no_number_follows_from_its_neighbours_or_from_another_key() -> None:
    """Neither the numbers nor their sizes are correlated, at any distance of items, rows or windows that was tried."""
    first, limit = normal(1), 5 / math.sqrt(200_000)
    others = [normal(2), normal(1 << 32), *(first.roll(shift) for shift in (1, 2, 16, 64, 384, 4096, 65_536))]
    radii, waves = pairs(1)
    for one, other in [*((first, each) for each in others), (radii, waves), (radii, waves.roll(1))]:
        for numbers in ((one, other), (one.abs(), other.abs())):
            assert abs(float(torch.corrcoef(torch.stack(numbers))[0, 1])) < limit


def test_numbers_depend_on_no_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one ends changes nothing, and a shorter tensor has the first numbers of a longer one."""
    whole, halves = normal(3, 5000), pairs(3, 5000)
    for chunk in (64, 1001, 4999, 5000):
        monkeypatch.setattr(random_numbers, "CHUNK", chunk)
        assert torch.equal(normal(3, 5000), whole)
        assert all(map(torch.equal, pairs(3, 5000), halves))
        assert torch.equal(normal(3, 1003), whole[:1003])
        assert torch.equal(pairs(3, 1003)[1], halves[1][:1003])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_half_type_has_the_rounded_numbers_of_float32(dtype: torch.dtype) -> None:
    """They are drawn in the same way and then cast."""
    rounded = torch.empty((3, 5, 70), dtype=dtype)
    random_numbers.write_normal(3, 2.5, rounded)
    assert torch.equal(rounded, normal(3, 3 * 5 * 70).view(3, 5, 70).to(dtype))
    assert all(map(torch.equal, pairs(3, dtype=dtype), (each.to(dtype) for each in pairs(3))))


def test_a_cpu_has_the_numbers_of_torchs_generator() -> None:
    """The radius is that of its first uniform numbers, the wave that of the next ones."""
    radii, waves = torch.empty(2, 5000)
    device("cpu").write_pairs(7, 2.5, radii, waves)
    first, second = torch.rand((2, 5000), generator=torch.Generator().manual_seed(7)).double().numpy()
    np.testing.assert_allclose(radii.numpy(), 2.5 * np.sqrt(-2 * np.log1p(-first)), rtol=1e-5)
    np.testing.assert_allclose(waves.numpy(), np.cos(2 * math.pi * second), atol=1e-6)
    torch.manual_seed(7)
    drawn = device("cpu").normal((3, 50), 2.5, 1, torch.bfloat16)
    torch.manual_seed(7)
    assert torch.equal(drawn, (torch.randn(3, 50) * 2.5).bfloat16())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_draws_what_the_cpu_computes() -> None:
    """All but a few numbers are the same to the last bit, and those are off by one."""
    on_gpu = device("cuda").normal((1_000_003,), 2.5, 5, torch.float32).cpu()
    own = normal(5, 1_000_003)
    assert int((on_gpu != own).sum()) <= 10
    torch.testing.assert_close(on_gpu, own, rtol=2**-22, atol=1e-12)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_drawing_on_a_gpu_takes_the_memory_of_a_chunk() -> None:
    """However many are drawn; the allocator reserves nothing for it afterwards."""
    on, chunk_bytes = device("cuda"), 12 << 20
    radii, waves = torch.empty((2, 1 << 24), dtype=torch.bfloat16, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    on.write_pairs(5, 2.5, radii, waves)
    assert torch.cuda.memory_allocated() == held
    assert torch.cuda.max_memory_allocated() - held <= chunk_bytes
    numbers = on.normal((1 << 24,), 2.5, 5, torch.bfloat16)
    assert torch.cuda.memory_reserved() - reserved == numbers.nbytes
