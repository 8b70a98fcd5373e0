"""What a module of anybody takes: where the batch of its inputs is, and token ids in place of numbers.

It is tried: a call with several items must return for each of them what a call with that item alone returns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from bench.modules.core import Adaptable
from bench.modules.wrapper import Wrapper, X, changed, check_plain, copied, first_tensor
from impls.contract import Unresolved, Unsupported, imported
from impls.sameness import are_same

ITEMS = 2
"""The items of a call that shows what a module takes."""

SEED = 0
"""The seed of the inputs that are tried, which are none of a run's."""

TURNED_DIMENSIONS = 3
"""The least dimensions of an input whose second one may be the batch: `[N, B, C]`."""

Tensors = tuple[Tensor, ...]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def is_function(given: Any) -> bool:
    """Return whether an input that a name gives is a function, not a shape."""
    return isinstance(given, str) and ":" in given


def with_input(
    inner: nn.Module,
    given: Any,
    usual: tuple[int, ...] = (),
    arguments: Arguments = ((X,), {}),
    *,
    is_outer: bool = False,
) -> Wrapper:
    """Return a module with the input that its name gives, a function or sizes, or with its usual one.

    Without a function that returns all `arguments`, x is in the place of X among them. Of a module that `is_outer` a
    part is measured, so the batch and the inputs of the whole are of no account.
    """
    if is_function(given):
        return _with_tensors(inner, imported(given, f"input {given!r}")(), is_outer=is_outer)
    return Adaptable(inner, (usual if given is None else _item(given),), *arguments)


def _item(given: Any) -> tuple[int, ...]:
    """Return the shape of an item in a text that has its batch first, as 8x3x224x224; raises Unresolved."""
    sides = str(given).split("x")
    if len(sides) < 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise Unresolved(f"input={given} must be sizes that begin with the batch, as 8x3x224x224, or module:function")
    return tuple(map(int, sides[1:]))


def _with_tensors(inner: nn.Module, inputs: Any, *, is_outer: bool) -> Wrapper:
    """Return a module with the inputs that a user's function returned: a tensor, a tuple or a mapping of tensors."""
    args = () if isinstance(inputs, Mapping) else tuple(inputs) if isinstance(inputs, tuple) else (inputs,)
    kwargs = dict(inputs) if isinstance(inputs, Mapping) else {}
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    for each in tensors:
        check_plain(each, "the function of inputs returns")
    if alone := of_arguments(inner, args, kwargs, is_outer=is_outer):
        return alone
    batch = next((len(each) for each in tensors if each.dim()), 0)
    if is_outer and batch:
        return Adaptable(inner, ((1,),), args, kwargs, batch=batch)  # x is used by the part, or by nothing
    raise Unresolved(
        f"{type(inner).__name__} takes no tensor of floating-point numbers, such as pixels or embeddings, and calls no "
        "nn.Embedding with its token ids"
    )


def tried(alone: Wrapper, *, may_take_ids: bool = False) -> Wrapper:
    """Return a module with the batch where it takes it, or with token ids if it may and does take these.

    `alone` has the batch in the first dimension. A module that is no function of each item either way, or can't be
    called, is returned as it is: its rows say why.
    """
    alone.eval()
    if any(map(is_lazy, alone.parameters())):  # they get their sizes in a call, which must be of this module itself
        _output(alone, alone.zeros(), is_own=True)
    xs = _random(alone)
    turned = Adaptable(alone.inner, alone.items, alone.args, alone.kwargs, batch_dim=1)
    if each := next((each for each in (alone, turned) if not change(each, xs)), None):
        return each
    is_of_ids = may_take_ids and isinstance(_output(alone, xs), Exception)
    return _of_ids(alone) or alone if is_of_ids else alone


def of_arguments(
    inner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_outer: bool = False
) -> Wrapper | None:
    """Return a module with the arguments of a call, in which x is the first floating-point tensor; None without one.

    For token ids it is what the first embedding returns for them. Raises `Unsupported` if x has no batch, but not if
    the module `is_outer`: then only one inside is measured.
    """
    path, x = "", first(args, kwargs)
    if x is None:
        path, x = first_embedding(inner, args, kwargs)
    if x is None:
        return None
    output = _output(inner.eval(), args, kwargs)  # before any candidate changes the embedding
    y = output if isinstance(output, Exception) else first_tensor(output)
    dims = sorted(range(1 + (x.dim() >= TURNED_DIMENSIONS)), key=lambda dim: not _is_shared(x.shape, dim, args, kwargs))
    marked = (args, kwargs) if path else with_x(args, kwargs)
    candidates = [*placed(inner, x, marked, dims, embedding=path)]
    turned = {dim: x.detach().float().transpose(0, dim) for dim in dims}
    for alone in candidates:
        if _gives_first_item(alone, turned[alone.batch_dim], y):
            return alone
    first_dim = next(alone for alone in candidates if not alone.batch_dim)
    if not is_outer and _has_no_batch(first_dim, (turned[0],)):
        where = "in its first dimension and in its second" if len(dims) > 1 else "in its first dimension"
        raise Unsupported(
            f"the input {[*x.shape]} of {type(inner).__name__} has no batch, tried {where}: an item alone doesn't give "
            "what it gives among the others, as in a graph, or as in a module that mixes items; outputs are compared "
            "item by item"
        )
    return first_dim


def placed(
    inner: nn.Module, x: Tensor, arguments: Any, dims: Iterable[int], *, items: int = 0, **of: Any
) -> Iterator[Wrapper]:
    """Yield a module with the batch in each of some dimensions of its input x.

    If x is of so many `items`, an item may have several rows of the first dimension, such as windows.
    """
    for dim in dims:
        batch, *item = x.transpose(0, dim).shape
        group = batch // items if items else 1
        sizes = (group, *item) if group > 1 else (*item,)
        yield Adaptable(inner, (sizes,), *arguments, batch=batch, group=group, batch_dim=dim, **of)


def _is_shared(shape: Sequence[int], dim: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether all tensors with as many dimensions as x have its size in this one, or 1 for all items."""
    tensors = (each for each in (*args, *kwargs.values()) if isinstance(each, Tensor) and each.dim() == len(shape))
    return all(each.shape[dim] in (1, shape[dim]) for each in tensors)


def _gives_first_item(alone: Wrapper, x: Tensor, y: Any) -> bool:
    """Return whether a module gives for the first item of x what is the first one of y, whatever the other items are.

    `y` is the output of the call whose arguments it got.
    """
    if change(alone, (x[:ITEMS] if len(x) > 1 else torch.cat([x, -x]),)):
        return False
    dim = alone.batch_dim
    return y.dim() > dim and are_same(y.narrow(dim, 0, 1).transpose(0, dim), _output(alone, (x[:1],)))


def _has_no_batch(alone: Wrapper, xs: Tensors) -> bool:
    """Return whether a module that is no function of each item can be called with all, and always returns the same."""
    y, again = _output(alone, xs), _output(alone, xs)
    return not isinstance(y, Exception) and not isinstance(again, Exception) and are_same(y, again)


def change(alone: Wrapper, xs: Tensors, *, is_own: bool = False) -> str:
    """Return how a module's output for an item changes without the other items; empty if it doesn't.

    Each item counts: behind a causal mask the first token depends on no other one, and so looks like an item. The calls
    are of the module itself if it `is_own`, which shows what it keeps.
    """
    items = range(len(xs[0]))
    both, *each = (_output(alone, of, is_own=is_own) for of in (xs, *(tuple(x[n : n + 1] for x in xs) for n in items)))
    for y in (both, *each):
        if isinstance(y, Exception):  # what it keeps has grown, or has the size of another batch
            return f"{type(y).__name__}: {y}".splitlines()[0]
    if both.shape[:1] == (len(items),) and all(are_same(both[n : n + 1], one) for n, one in enumerate(each)):
        return ""
    return "called again, with one of the items, it returns something else for it"


def first_embedding(inner: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Tensor | None]:
    """Return the path of the first embedding that a call gives its token ids, and what that returns for them.

    The path is empty if there is none.
    """
    every = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor) and not each.is_floating_point()]
    found: list[tuple[str, Tensor]] = []

    def see(path: str, _module: nn.Module, given: tuple[Any, ...], y: Any) -> None:
        if given and isinstance(y, Tensor) and any(_are_equal(given[0], ids) for ids in every):
            found.append((path, y.clone()))

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
        module = module if is_own else copied(module)
        args, kwargs = changed((tuple(args), kwargs or {}), _own)  # a module may change them in place
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            y = module(*args, **kwargs)
        if isinstance(y, Tensor):
            check_plain(y)
        return y
    except Exception as error:
        return error


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _are_equal(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.shape == other.shape and bool((one == other).all())
