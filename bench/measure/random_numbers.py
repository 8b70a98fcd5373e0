"""Normal random numbers by a key: on a CPU by torch's generator and NumPy, on a GPU there, in chunks.

torch's generator of a GPU draws other numbers on another card, and may do so in another version. The sides of a duel
can have two versions, and the second is judged by what the first computes on the same inputs. So a GPU's numbers follow
from the key and their place alone. Their bits are those of SplitMix64 (Steele, Lea and Flood 2014), which takes whole
numbers only. Logarithm and cosine are computed in float64 and rounded to float32: where two versions differ in the last
bit of float64, the float32 is another one in a few of a billion numbers, and then by its last bit.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

CHUNK = 1 << 18
"""The numbers that are drawn at a time on a GPU: what is computed on the way takes 12 MiB at most."""

STEP = 0x9E3779B97F4A7C15
MIXED = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""SplitMix64 adds STEP to its state for each number; each round of its mix is a shift, and a factor."""

HALF = 32
"""The bits of a uniform number: two are made of one of SplitMix64."""


def write_pairs_by_numpy(key: int, sd: float, radii: Tensor, waves: Tensor) -> None:
    """Write radii and waves of a key, whose products are normal with this standard deviation (Box and Muller 1958)."""
    generator = torch.Generator().manual_seed(key)
    first, second = torch.rand((2, len(radii)), generator=generator).numpy()
    # by NumPy: on an Intel Xeon, torch's log1p was seen to have 11 right bits in the part of one thread of two, in one
    # of 30 judges; the outputs that it expected were then off by 1e-4
    np.multiply(np.sqrt(-2 * np.log1p(-first)), sd, out=first)
    np.cos(2 * math.pi * second, out=second)
    radii.copy_(torch.from_numpy(first))
    waves.copy_(torch.from_numpy(second))


def write_pairs(key: int, sd: float, radii: Tensor, waves: Tensor) -> None:
    """Write the same of a key where the tensors are; shorter ones have the first numbers of longer ones."""
    for part, radius, wave in _pairs(key, len(radii), radii.device):
        radii[part].copy_(radius.mul_(sd).float())
        waves[part].copy_(wave.float())


def write_normal(key: int, sd: float, out: Tensor) -> None:
    """Write normal numbers of a key into a tensor where it is; a shorter one has the first numbers of a longer one."""
    flat = out.view(-1)
    for part, radius, wave in _pairs(key, len(flat), out.device):
        flat[part].copy_(radius.mul_(wave).mul_(sd).float())


def _pairs(key: int, number: int, place: torch.device) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield for each chunk of so many numbers its place, its radii and its waves, in float64."""
    for begin in range(0, number, CHUNK):
        part = slice(begin, min(number, begin + CHUNK))
        both = bits(key, part, place)
        radius = (both & ((1 << HALF) - 1)).double().mul_(2.0**-HALF).neg_().log1p_().mul_(-2).sqrt_()
        yield part, radius, _shifted(both, HALF).double().mul_(2 * math.pi * 2.0**-HALF).cos_()


def bits(key: int, part: slice, place: torch.device) -> Tensor:
    """Return a part of the numbers of SplitMix64 that begin with a key, as whole numbers with a sign."""
    numbers = torch.arange(part.start + 1, part.stop + 1, device=place).mul_(_signed(STEP)).add_(key)
    for shift, factor in MIXED:
        numbers.bitwise_xor_(_shifted(numbers, shift)).mul_(_signed(factor))
    return numbers


def _shifted(numbers: Tensor, by: int) -> Tensor:
    """Return numbers of 64 bits that are shifted to the right, with zeros before them."""
    return (numbers >> by).bitwise_and_((1 << (64 - by)) - 1)


def _signed(number: int) -> int:
    """Return the whole number with a sign that has the same 64 bits."""
    return number - (number >> 63 << 64)
