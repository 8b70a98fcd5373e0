"""What a module of anybody takes: where the batch of its inputs is, and token ids in place of numbers.

It is tried: a call with several items must return for the first one what a call with that item alone returns.
"""

import copy
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from impls.contract import Unsupported
from impls.modules.wrapper import Wrapper, X, changed

ITEMS = 2
"""The items of a call that shows what a module takes."""

NEAR = 1e-3
"""Outputs that differ by less than this share of the largest one are the same: batches may have other kernels."""

SEED = 0
"""The seed of the inputs that are tried, which are none of a run's."""

TURNED_DIMENSIONS = 3
"""The least dimensions of an input whose second one may be the batch: `[N, B, C]`."""

Tensors = tuple[Tensor, ...]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def tried(alone: Wrapper, *, is_outer: bool = False) -> Wrapper:
    """Return a module with the batch where it takes it, or with token ids if it takes these in place of numbers.

    `alone` has the batch in the first dimension. A module that can't be called is returned as it is: its rows say why.
    Raises `Unsupported` if it has no batch, but not if it `is_outer`: then only a module inside is measured.
    """
    alone.eval()
    if any(map(is_lazy, alone.parameters())):  # they get their sizes in a call, which must be of this module itself
        _output(alone, alone.zeros(), is_own=True)
    xs = _random(alone)
    turned = Wrapper(alone.inner, alone.items, alone.args, alone.kwargs, batch_dim=1)
    if isinstance(_output(alone, xs), Exception):
        of_ids = _of_ids(alone)
        return turned if not of_ids and is_item_by_item(turned, xs) else of_ids or alone
    return batched([(alone, xs), (turned, xs)], xs[0].shape, is_outer=is_outer)


def of_arguments(
    inner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_outer: bool = False
) -> Wrapper | None:
    """Return a module with the arguments of a call, in which x is the first floating-point tensor; None without one.

    For token ids it is what the first embedding returns for them. Raises as `tried` does.
    """
    path, x = "", first(args, kwargs)
    if x is None:
        path, x = first_embedding(inner, args, kwargs)
    if x is None:
        return None
    x = x.detach().float()
    with_mark = (args, kwargs) if path else with_x(args, kwargs)
    candidates = [
        (Wrapper(inner, (tuple(each.shape[1:]),), *with_mark, batch=len(each), batch_dim=dim, embedding=path), (each,))
        for dim, each in enumerate((x, x.transpose(0, 1))[: 1 + (x.dim() >= TURNED_DIMENSIONS)])
    ]
    candidates[0][0].eval()
    return batched(candidates, x.shape, is_outer=is_outer)


def batched(candidates: Sequence[tuple[Wrapper, Tensors]], shape: Sequence[int], *, is_outer: bool) -> Wrapper:
    """Return the first of these modules that is a function of each item of its inputs; the first one if it `is_outer`.

    Raises `Unsupported` if none is. If the first one can't be called, draws random numbers, or returns a row for each
    item elsewhere than in the first dimension, it is returned: its rows say that.
    """
    for alone, xs in candidates:
        if is_item_by_item(alone, tuple(x[:ITEMS] if len(x) > 1 else torch.cat([x, -x]) for x in xs)):
            return alone
    alone, xs = candidates[0]
    y, again = _output(alone, xs), _output(alone, xs)
    can_be_called = not (isinstance(y, Exception) or isinstance(again, Exception))
    if is_outer or not can_be_called or not _are_near(y, again) or len(xs[0]) in y.shape[1:2]:
        return alone
    where = "in its first dimension and in its second" if len(candidates) > 1 else "in its first dimension"
    raise Unsupported(
        f"the input {[*shape]} of {type(alone.inner).__name__} has no batch, tried {where}: an item alone doesn't give "
        "what it gives among the others, as in a graph; outputs are compared item by item"
    )


def is_item_by_item(alone: Wrapper, xs: Tensors) -> bool:
    """Return whether a call with several items returns for the first one what a call with that item alone does."""
    both, one = _output(alone, xs), _output(alone, tuple(x[:1] for x in xs))
    if isinstance(both, Exception) or isinstance(one, Exception):
        return False
    return both.shape[:1] == xs[0].shape[:1] and _are_near(both[:1], one)


def first_embedding(inner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Tensor | None]:
    """Return the path of the first embedding that a call gives its token ids, and what that returns for them.

    The path is empty if there is none.
    """
    every = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor) and not each.is_floating_point()]
    found: list[tuple[str, Tensor]] = []

    def see(path: str, _module: nn.Module, given: tuple[Any, ...], y: Any) -> None:
        if given and isinstance(y, Tensor) and any(_are_equal(given[0], ids) for ids in every):
            found.append((path, y))

    embeddings = [(path, each) for path, each in inner.named_modules() if isinstance(each, nn.Embedding)]
    hooks = [each.register_forward_hook(partial(see, path)) for path, each in embeddings]
    try:
        _output(inner.eval(), args, kwargs, is_own=True)
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else ("", None)


def first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the first floating-point tensor among arguments; None without one."""
    tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
    return next((tensor for tensor in tensors if tensor.is_floating_point()), None)


def with_x(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return arguments with x, their first tensor, replaced by what marks its place."""
    x = first(args, kwargs)
    return changed((args, kwargs), lambda value: X if value is x else value)


def _of_ids(alone: Wrapper) -> Wrapper | None:
    """Return a module that takes token ids, in place of numbers of these items; None if it takes none."""
    if len(alone.items) > 1:
        return None
    sizes = {each.num_embeddings for each in alone.modules() if isinstance(each, nn.Embedding)}
    for size in sorted(sizes, reverse=True):  # the vocabulary is the largest table, but for one of positions
        ids = torch.randint(size // 2, size, (ITEMS, alone.items[0][0]), generator=torch.Generator().manual_seed(SEED))
        args, kwargs = changed((alone.args, alone.kwargs), partial(_in_place_of_x, ids))
        if not isinstance(_output(alone.inner, args, kwargs), Exception):
            return of_arguments(alone.inner, args, kwargs)
    return None


def _in_place_of_x(ids: Tensor, value: Any) -> Any:
    return ids if value == X else value


def _random(alone: Wrapper) -> Tensors:
    generator = torch.Generator().manual_seed(SEED)
    return tuple(torch.randn(ITEMS, *item, generator=generator) for item in alone.items)


def _output(
    module: nn.Module, args: Iterable[Any], kwargs: dict[str, Any] | None = None, *, is_own: bool = False
) -> Any:
    """Return the output of a call, or the error that it ends with; of a copy, unless the module's `own` is asked for.

    The generator of random numbers is left as it was.
    """
    try:
        module = module if is_own else copy.deepcopy(module)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return module(*args, **(kwargs or {}))
    except Exception as error:
        return error


def _are_near(one: Tensor, other: Tensor) -> bool:
    largest = float(one.nan_to_num().abs().max()) if one.numel() else 0.0
    return one.shape == other.shape and torch.allclose(one, other, rtol=0.0, atol=NEAR * largest, equal_nan=True)


def _are_equal(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.shape == other.shape and bool((one == other).all())
