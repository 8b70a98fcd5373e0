"""Forms of an expression: what to write so that its dimensions are those that a core asks for."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Axis = tuple[str, ...]
"""The dimensions of a core that one of a tensor holds, the outermost first; several if they are flattened."""


class Formless(Exception):  # noqa: N818 - what is said of an expression
    """An expression can't be brought into the form that is asked for; the message is the reason."""


ATOMS = ast.Call | ast.Attribute | ast.Subscript | ast.Name | ast.Constant
"""What a method, or an operator, can follow."""


@dataclass(frozen=True)
class Shaped:
    """An expression whose dimensions hold these of a core, with their sizes in this call."""

    text: str
    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]

    @property
    def real(self) -> set[str]:
        """The dimensions that it has, but for those of size 1."""
        return {name for axis, size in zip(self.axes, self.sizes, strict=True) if size > 1 for name in axis}


def parse(text: str) -> ast.expr:
    """Return the tree of an expression."""
    return ast.parse(text, mode="eval").body


def method(text: str, name: str, *arguments: object) -> str:
    """Return a call of a method of an expression."""
    return f"{grouped(text)}.{name}({', '.join(map(str, arguments))})"


def grouped(text: str) -> str:
    """Return an expression that a method, or an operator, can follow."""
    return text if isinstance(parse(text), ATOMS) else f"({text})"


def joined(texts: Sequence[str], sign: str) -> str:
    """Return expressions with an operator between them that binds less than a sign before one."""
    every = (each if len(texts) == 1 or isinstance(parse(each), ATOMS | ast.UnaryOp) else f"({each})" for each in texts)
    return f" {sign} ".join(every)


def formed(shaped: Shaped, wanted: Sequence[str], counts: Mapping[str, str], *, short: int = 0) -> str:
    """Return an expression whose dimensions are the wanted ones, in their order.

    A wanted dimension that the expression doesn't have is one of size 1; before the first one it is left out if no more
    than `short` are left, but two at least. `counts` has the text of dimensions' sizes.
    """
    text, axes = _turned(_squeezed(_joined(shaped, counts)), wanted)
    flat = [place for place, axis in enumerate(axes) if len(axis) > 1]
    for place in reversed(flat):
        names = axes[place]
        sizes = ["-1", *(counts[name] for name in names[1:])]
        text = method(text, "unflatten", place, f"({', '.join(sizes)})")
        axes = [*axes[:place], *((name,) for name in names), *axes[place + 1 :]]
    return _filled(text, [axis[0] for axis in axes], wanted, short)


def _joined(shaped: Shaped, counts: Mapping[str, str]) -> Shaped:
    """Flatten neighbours that hold parts of one dimension; a part of size 1 is repeated, if the other isn't."""
    text, axes, sizes, place = shaped.text, [*shaped.axes], [*shaped.sizes], 0
    while place + 1 < len(axes):
        one, (size, other) = axes[place], sizes[place : place + 2]
        if not one or axes[place + 1] != one or len(one) > 1:
            place += 1
            continue
        if 1 in (size, other) and size != other:
            repeats = ["-1"] * len(axes)
            whole = place + (size == 1)
            repeats[place + (size != 1)] = f"{counts[one[0]]} // {grouped(text)}.shape[{whole}]"
            text = method(text, "expand", *repeats)
        text = method(text, "flatten", place, place + 1)
        sizes[place : place + 2] = [2 if max(size, other) > 1 else 1]
        axes[place : place + 2] = [one]
    return Shaped(text, tuple(axes), tuple(sizes))


def _squeezed(shaped: Shaped) -> Shaped:
    """Leave out dimensions of size 1 that hold none of a core; of several in one of size 1 the first counts."""
    text, axes = (
        shaped.text,
        [axis if size != 1 else axis[:1] for axis, size in zip(shaped.axes, shaped.sizes, strict=True)],
    )
    for place in reversed([place for place, axis in enumerate(axes) if not axis]):
        text = method(text, "squeeze", place)
        del axes[place]
    return Shaped(text, tuple(axes), ())


def _turned(shaped: Shaped, wanted: Sequence[str]) -> tuple[str, list[Axis]]:
    """Put dimensions into their order; undo a turn that the expression ends with."""
    names = [name for axis in shaped.axes for name in axis]
    if not {*names} <= {*wanted}:
        raise Formless(f"it has other dimensions than {', '.join(wanted)}")
    if len({*names}) < len(names):
        raise Formless("two of its dimensions are parts of one")
    order = sorted(range(len(shaped.axes)), key=lambda each: wanted.index(shaped.axes[each][0]))
    final = [shaped.axes[each] for each in order]
    tree = parse(shaped.text)
    inner, turn = peeled(tree, len(order))
    whole = [turn[each] for each in order]
    is_simpler = inner is not tree and _is_swap(whole) and order != [*range(len(order))]
    return (turned(ast.unparse(inner), whole) if is_simpler else turned(shaped.text, order)), final


def _is_swap(order: Sequence[int]) -> bool:
    return sum(place != each for place, each in enumerate(order)) in (0, 2)


def turned(text: str, order: Sequence[int]) -> str:
    """Return a permutation of an expression's dimensions."""
    places = [place for place, each in enumerate(order) if place != each]
    if not places:
        return text
    if len(places) == len("ab"):
        last = places == [len(order) - 2, len(order) - 1]
        return method(text, "transpose", *((-2, -1) if last else places))
    return method(text, "permute", *order)


def peeled(tree: ast.expr, rank: int) -> tuple[ast.expr, list[int]]:
    """Return what an expression turns, and which dimension of that each of its own is."""
    same = [*range(rank)]
    if isinstance(tree, ast.Attribute) and (tree.attr == "mT" or (tree.attr == "T" and rank == len("NM"))):
        return tree.value, [*same[:-2], rank - 1, rank - 2]
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute)):
        return tree, same
    try:
        places = [int(ast.literal_eval(each)) for each in tree.args]
    except (ValueError, TypeError):
        return tree, same
    if tree.func.attr in ("transpose", "swapaxes", "swapdims") and len(places) == len("ab"):
        one, other = (place % rank for place in places)
        same[one], same[other] = other, one
        return tree.func.value, same
    if tree.func.attr == "permute" and len(places) == rank:
        return tree.func.value, [place % rank for place in places]
    return tree, [*range(rank)]


def _filled(text: str, have: Sequence[str], wanted: Sequence[str], short: int) -> str:
    """Add dimensions of size 1 for those that are missing."""
    missing = [place for place, name in enumerate(wanted) if name not in have]
    is_first = missing == [*range(len(missing))]
    if not missing or (is_first and len("NM") <= len(have) <= short):
        return text
    if is_first:
        return f"{grouped(text)}[{', '.join(['None'] * len(missing))}]"
    for place in missing:
        text = method(text, "unsqueeze", place)
    return text
