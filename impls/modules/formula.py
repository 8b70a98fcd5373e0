"""What a core computes, as far as `F.scaled_dot_product_attention` can express it: scores times a number, with terms.

The operators between the products are followed one after the other. Some move the scores to another shape, add to
them, multiply them or hide some of them. Whatever else touches them is an obstacle.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from impls.modules.trace import SCORES, VALUE, Node, OperatorCall, Trace
from impls.modules.wrapper import changed

LOWEST = -1000.0
"""A number that leaves nothing of a score that it replaces, for scores as they occur."""

SOFTMAXES = ("_softmax", "_safe_softmax")

ADDED, MULTIPLYING, DIVIDING, HIDING = "added", "multiplying", "dividing", "hiding"
"""The kinds of terms."""

VIEWS = (
    "view",
    "_unsafe_view",
    "_reshape_alias",
    "permute",
    "transpose",
    "t",
    "expand",
    "unsqueeze",
    "squeeze",
    "alias",
)
PARTS = ("slice", "select")
COPIES = ("clone", "_to_copy", "contiguous", "nan_to_num")
"""The operators that give the scores another shape, those that may leave only some, and those that leave them."""

WORDS = {
    "dropout that is on": ("native_dropout", "bernoulli"),
    "a soft cap": ("tanh",),
    "top-k": ("topk", "kthvalue", "sort"),
    "a gate": ("sigmoid",),
    "a layer over heads, as in talking heads": ("convolution", "mm", "addmm", "bmm", "baddbmm"),
    "a threshold": ("lt", "le", "gt", "ge", "relu"),
    "a limit": ("clamp", "clamp_min", "clamp_max", "maximum", "minimum"),
    "another normalisation": ("sum", "mean", "linalg_vector_norm"),
    "a power": ("pow", "square", "sqrt", "exp", "log"),
    "a softmax over another dimension, or a second one": SOFTMAXES,
    "some scores apart from others": (*PARTS, "index_put", "copy", "cat"),
    "a gate, or another factor": ("mul", "div"),
    "a mask that isn't one of SDPA": ("masked_fill", "where"),
}
"""Obstacles in the field's words, with the operators that show them; the first one names them all."""


class Obstacle(Exception):  # noqa: N818 - it is no error of the program
    """What stands between the products of a core and has no place in SDPA: operators, with their lines of source."""

    def __init__(self, calls: Iterable[OperatorCall]) -> None:
        every = list(calls)
        calls = [call for call in every if call.name not in VIEWS] or every
        names = list(dict.fromkeys(call.name for call in calls))
        word = next((word for word, shown in WORDS.items() if {*shown} & {*names}), "what SDPA has no place for")
        lines = dict.fromkeys(f"{file}:{line}" for call in calls for file, line in call.lines)
        super().__init__(f"{word} ({', '.join(names)}){' at ' * bool(lines)}{', '.join(lines)}")


@dataclass(frozen=True)
class Term:
    """A tensor that meets the scores while they have a layout: it is added, multiplies or divides them, or hides some.

    `weight` is what an added tensor is multiplied by, or the score in place of hidden ones. A boolean tensor that hides
    shows its True if `shows`.
    """

    kind: str
    tensor: Tensor
    layout: Tensor
    call: OperatorCall
    weight: float = 1.0
    shows: bool = False
    causes: tuple[OperatorCall, ...] = ()
    """The operators that made the tensor, if it depends on the scores."""


@dataclass(frozen=True)
class Image:
    """The scores on their way.

    `layout` is a tensor without memory whose strides say which score of the first product is where.
    """

    layout: Tensor
    scale: float = 1.0
    terms: tuple[Term, ...] = ()
    softmax: tuple[Tensor, int] | None = None
    """The layout under the softmax and its dimension, once they have gone through one."""


Handle = Callable[[Image, Sequence[Any], OperatorCall, Sequence[OperatorCall]], Image | None]
"""Deals with an operator on the scores: it gets their image, the operator's arguments with the layout in their place,
and what made those arguments that are derived from scores. None if the result isn't the scores any more."""


class Reader:
    """Follows the scores of a trace through its calls."""

    def __init__(self, trace: Trace) -> None:
        self._shapes, self._roots = trace.shapes, trace.roots
        self._images: dict[int, Image] = {}
        self._derived: dict[int, tuple[OperatorCall, ...]] = {}
        """What depends on the scores without being them: the operators that took the scores for it."""
        self._parts: set[int] = set()
        """What of these are views of scores."""
        first, *between, self._last = trace.calls
        self._begin(first)
        for call in between:
            self._read(call)

    def weights(self) -> Image:
        """Return what the last product takes as weights; raises Obstacle if it isn't a softmax of scores."""
        (node,) = {*self._last.inputs} - {VALUE}
        image = self._images.get(node)
        if image is None or image.softmax is None or len(self._last.args) > 2:
            raise Obstacle(self._derived.get(node, (self._last,)))
        return image

    def _begin(self, call: OperatorCall) -> None:
        """Note the first product; one with a third operand adds it."""
        image = Image(torch.empty(self._shapes[SCORES], device="meta"))
        if len(call.args) > 2:
            image = replace(image, scale=float(call.kwargs.get("alpha", 1)))
            if beta := float(call.kwargs.get("beta", 1)):
                image = _with(image, Term(ADDED, call.args[0], image.layout, call, beta)) or image
        self._images[SCORES] = image

    def _read(self, call: OperatorCall) -> None:
        inputs = [each for each in call.inputs if each in self._images]
        causes = tuple(dict.fromkeys(cause for each in call.inputs for cause in self._derived.get(each, ())))
        handle = HANDLES.get(call.name)
        image = None
        if call.name == "copy" and len(inputs) == len(call.outputs) + 1:
            # all scores are replaced by others, which must lie in the same order
            old, new = (self._images[each] for each in inputs)
            (was, layout) = ((each.layout.shape, each.layout.stride()) for each in (old, new))
            image = new if was == layout else None
        if handle and len(inputs) == 1:
            args = changed(call.args, lambda value: self._stand_in(value, inputs[0]))
            image = handle(self._images[inputs[0]], args, call, causes)
        if image is None and (inputs or call.is_in_place or self._parts & {*call.inputs}):
            causes = (*causes, call)
            self._parts.update(call.outputs if call.name in (*VIEWS, *PARTS) else ())
        for each in call.outputs:
            self._put(each, image, causes)
            if call.is_in_place:
                self._put_in_views(each, image, causes)

    def _put(self, node: int, image: Image | None, causes: tuple[OperatorCall, ...]) -> None:
        self._images.pop(node, None)
        if image is None:
            self._derived[node] = causes
        else:
            self._images[node] = image

    def _put_in_views(self, changed_node: int, image: Image | None, causes: tuple[OperatorCall, ...]) -> None:
        """Note a change in place in the other views of the same memory."""
        for node, old in [*self._images.items()]:
            if node != changed_node and self._roots[node] == self._roots[changed_node]:
                self._put(node, image and replace(image, layout=old.layout), causes)

    def _stand_in(self, value: Any, image: int) -> Any:
        """Return in place of the scores their layout, of what is derived from them a tensor of its shape alone."""
        if not isinstance(value, Node):
            return value
        return (
            self._images[image].layout
            if value.number == image
            else torch.empty(self._shapes[value.number], device="meta")
        )


def _moved(image: Image, args: Sequence[Any], call: OperatorCall, _causes: Sequence[OperatorCall]) -> Image | None:
    """Give the scores another shape; None if they then lie in no regular order, or only some are left."""
    try:
        layout = args[0].view(args[1]) if "view" in call.name else call.operator(*args, **call.kwargs)
    except (RuntimeError, IndexError):
        return None
    return replace(image, layout=layout) if layout.numel() == image.layout.numel() else None


def _added(image: Image, args: Sequence[Any], call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    """Add a tensor, or subtract it, or the scores from it; a number moves all scores alike, which changes nothing."""
    alpha = float(call.kwargs.get("alpha", args[2] if len(args) > 2 else 1))
    factors = {"add": (1.0, alpha), "sub": (1.0, -alpha), "rsub": (-alpha, 1.0)}[call.name]
    place = 0 if args[0] is image.layout else 1
    other, weight = args[1 - place], factors[1 - place]
    image = _times(image, factors[place])
    return _with(image, Term(ADDED, other, image.layout, call, weight, causes=tuple(causes)))


def _scaled(image: Image, args: Sequence[Any], call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    place = 0 if args[0] is image.layout else 1
    other = args[1 - place]
    if call.name == "div" and (place or call.kwargs.get("rounding_mode")):
        return None
    if isinstance(other, Tensor):
        kind = DIVIDING if call.name == "div" else MULTIPLYING
        return _with(image, Term(kind, other, image.layout, call, causes=tuple(causes)))
    return _times(image, 1 / other if call.name == "div" else other)


def _filled(image: Image, args: Sequence[Any], call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    """Hide scores where a mask is true, by `masked_fill`."""
    return _hidden(image, args[1], args[2], call, causes, shows=False) if args[0] is image.layout else None


def _chosen(image: Image, args: Sequence[Any], call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    """Hide scores by `where`, where its condition is true or where it is false."""
    condition, *both = args
    if len(both) < 2 or condition is image.layout:
        return None
    shows = both[0] is image.layout
    return _hidden(image, condition, both[shows], call, causes, shows=shows)


def _hidden(
    image: Image, mask: Any, value: Any, call: OperatorCall, causes: Sequence[OperatorCall], *, shows: bool
) -> Image | None:
    """Hide scores; a weight that is hidden already may be set to zero."""
    if causes or mask.dtype != torch.bool:
        return None
    if image.softmax is None:
        term = Term(HIDING, mask, image.layout, call, weight=_most(value), shows=shows)
        return _with(image, term) if term.weight <= LOWEST else None
    hidden = (each for each in image.terms if each.kind == HIDING and each.shows == shows)
    is_known = any(each.tensor.shape == mask.shape and torch.equal(each.tensor, mask) for each in hidden)
    return image if is_known and _most(value) == _most(-torch.as_tensor(value)) == 0 else None


def _limited(image: Image, args: Sequence[Any], call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    """Leave scores as they are if a limit is so far away that it hides what lies beyond it."""
    if causes:
        return None
    given = dict(zip({"clamp_max": ("max",)}.get(call.name, ("min", "max")), args[1:], strict=False)) | call.kwargs
    low, high = given.get("min"), given.get("max")
    is_far = (low is None or _most(low) <= LOWEST) and (high is None or _most(-torch.as_tensor(high)) <= LOWEST)
    return image if is_far else None


def _larger(image: Image, args: Sequence[Any], _call: OperatorCall, causes: Sequence[OperatorCall]) -> Image | None:
    """Take the larger of the scores and a number that hides."""
    other = args[1] if args[0] is image.layout else args[0]
    return image if not causes and _most(other) <= LOWEST else None


def _before(handle: Handle) -> Handle:
    """Return what deals with scores, but not with weights."""
    return lambda image, args, call, causes: None if image.softmax else handle(image, args, call, causes)


HANDLES: dict[str, Handle] = {
    **dict.fromkeys((*VIEWS, *PARTS), _moved),
    **dict.fromkeys(COPIES, lambda image, *_: image),
    **dict.fromkeys(("add", "sub", "rsub"), _before(_added)),
    **dict.fromkeys(("mul", "div"), _before(_scaled)),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _before(_limited)),
    "neg": _before(lambda image, *_: _times(image, -1.0)),
    "maximum": _before(_larger),
    "masked_fill": _filled,
    "where": _chosen,
    **dict.fromkeys(
        SOFTMAXES, _before(lambda image, args, *_: replace(image, softmax=(image.layout, args[1] % image.layout.dim())))
    ),
}


def _with(image: Image, term: Term) -> Image | None:
    """Return the scores with a term, whose tensor may bring dimensions of size 1; None if it multiplies them."""
    if not isinstance(term.tensor, Tensor):
        return image
    shape = torch.broadcast_shapes(image.layout.shape, term.tensor.shape)
    if shape.numel() != image.layout.numel():
        return None
    layout = image.layout.broadcast_to(shape)
    return replace(image, layout=layout, terms=(*image.terms, replace(term, layout=layout)))


def _times(image: Image, factor: float) -> Image:
    terms = (replace(each, weight=each.weight * factor) for each in image.terms)
    return replace(image, scale=image.scale * factor, terms=tuple(terms))


def _most(value: Any) -> float:
    """Return the largest of some numbers, which may be one."""
    return float(value.max()) if isinstance(value, Tensor) and not value.is_meta else float(value)
