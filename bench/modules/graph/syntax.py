"""Operators of a graph in the syntax tree of the source that called them."""

import ast
import builtins
import linecache
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from torch.fx import Node

from bench.modules.graph.tracing import LOCALS, frames, name

Place = tuple[int, int | None, int | None, int | None]
"""Line, end line, column and end column of an expression."""

MODULES = ("torch", "F", "nn", "functional", "einops", "einx", "np", "math", "ops")
"""Names of modules, whose functions have no tensor before the dot."""

ABOUT = ("shape", "size", "dtype", "device", "ndim", "dim", "numel")
"""Attributes of a tensor that are no tensors."""

TURNED = ("mT", "T", "H", "mH", "data")
"""Attributes of a tensor that are the tensor in another form."""

OPERATIONS = (
    *("matmul", "bmm", "mm", "baddbmm", "einsum", "add", "sub", "mul", "div", "true_divide", "subtract", "multiply"),
    *("divide", "masked_fill", "where", "linear", "mv", "dot", "cat"),
)
"""Functions and methods whose arguments are those of the operator."""


GIVEN = ("input", "batch1", "batch2", "mat2", "tensor2", "other", "weight", "mask", "value")
"""Keywords of theirs that are no options."""


@dataclass(frozen=True)
class Expression:
    """An expression at the place of an operator, by the tree and the text of its file."""

    node: Node
    tree: ast.expr

    @property
    def text(self) -> str:
        """The expression in one line, as the source has it if that has one line."""
        return written(self.node, self.tree)


@cache
def parsed(file: str) -> tuple[str, ast.Module | None]:
    """Return the text of a file and its syntax tree; None if it has none."""
    text = "".join(linecache.getlines(file))
    try:
        return text, ast.parse(text)
    except SyntaxError:
        return text, None


@cache
def _by_place(file: str) -> dict[Place, ast.expr | ast.AugAssign]:
    tree = parsed(file)[1]
    every = ast.walk(tree) if tree else iter(())
    calls = (each for each in every if isinstance(each, ast.Call | ast.BinOp | ast.AugAssign))
    return {(each.lineno, each.end_lineno, each.col_offset, each.end_col_offset): each for each in calls}


def call_of(node: Node) -> ast.expr | ast.AugAssign | None:
    """Return the call, or operation, of the source that made a node; None without one."""
    every = frames(node)
    return _by_place(every[0].file).get(every[0][1:]) if every else None


def written(node: Node, tree: ast.AST) -> str:
    """Return the text of an expression in the file of a node, in one line."""
    text = ast.get_source_segment(parsed(frames(node)[0].file)[0], tree) if hasattr(tree, "lineno") else None
    return ast.unparse(tree) if text is None or "\n" in text else text


def arguments(node: Node) -> list[ast.expr]:
    """Return the expressions of an operator's arguments, in its order; empty if they aren't known."""
    call = call_of(node)
    if isinstance(call, ast.BinOp):
        return [call.left, call.right]
    if isinstance(call, ast.AugAssign):
        return [call.target, call.value]
    if not isinstance(call, ast.Call):
        return []
    given = [each for each in call.args if not _is_text(each)]
    if any(isinstance(each, ast.Starred) for each in given):
        return []
    return _of_call(node, call, given)


def _of_call(node: Node, call: ast.Call, given: list[ast.expr]) -> list[ast.expr]:
    function = call.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if called.rstrip("_") not in OPERATIONS:
        is_layer = name(node) == "linear" and len(given) == 1
        of_layer = [ast.Attribute(function, each, ast.Load()) for each in ("weight", "bias")]
        return [*given, *of_layer] if is_layer else []
    if called == "einsum":  # its equation may be a name too
        given = [each for each in given if not isinstance(each, ast.Name) or is_tensor(each.id, node)]
        given = given[0].elts if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple) else given
        return given if len(given) == len("ab") else []
    if isinstance(function, ast.Attribute) and not _is_module(function.value):
        given = [function.value, *given]
        if called == "where":  # scores.where(shown, other)
            given[:2] = given[1::-1]
    if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple):
        return given[0].elts
    return given + [each.value for each in call.keywords if each.arg in GIVEN]


def sizes_of_view(node: Node) -> list[Expression]:
    """Return the expressions of the sizes that a view is given."""
    call = call_of(node)
    given = call.args if isinstance(call, ast.Call) else []
    if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple):
        given = given[0].elts
    return [Expression(node, each) for each in given]


def origin(tree: ast.expr) -> ast.expr:
    """Return the tensor from which methods, and functions of their first argument, make another one."""
    while True:
        if isinstance(tree, ast.Subscript) or (isinstance(tree, ast.Attribute) and tree.attr in TURNED):
            tree = tree.value
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and not _is_module(tree.func.value):
            tree = tree.func.value
        elif isinstance(tree, ast.Call) and tree.args:
            tree = tree.args[0]
        else:
            return tree


def keyword(node: Node, word: str) -> Expression | None:
    """Return the expression of a keyword argument of an operator's call."""
    call = call_of(node)
    found = [each.value for each in call.keywords if each.arg == word] if isinstance(call, ast.Call) else []
    return Expression(node, found[0]) if found else None


def _is_text(tree: ast.expr) -> bool:
    return isinstance(tree, ast.JoinedStr) or (isinstance(tree, ast.Constant) and isinstance(tree.value, str))


def _is_module(tree: ast.expr) -> bool:
    while isinstance(tree, ast.Attribute):
        tree = tree.value
    return isinstance(tree, ast.Name) and tree.id in MODULES


def argument(node: Node, number: int) -> Expression | None:
    """Return the expression of one of an operator's arguments, if the source has it."""
    found = arguments(node)
    return Expression(node, found[number]) if number < len(found) else None


def beside(node: Node, number: int) -> Expression | None:
    """Return the expression of the number in an operator of a tensor and a number.

    A number before the tensor comes to the operator as the second argument, so what has no tensor counts.
    """
    found = arguments(node)
    numbers = [each for each in found if not _has_tensor(each, node)]
    if len(numbers) == 1:
        return Expression(node, numbers[0])
    return argument(node, number) if numbers == found[number : number + 1] else None


def _has_tensor(tree: ast.AST, node: Node) -> bool:
    """Return whether an expression has the name of a tensor, but for what is said about it."""
    if isinstance(tree, ast.Attribute) and tree.attr in ABOUT:
        return False
    if isinstance(tree, ast.Name):
        return is_tensor(tree.id, node)
    if isinstance(tree, ast.Call) and not isinstance(tree.func, ast.Name) and _has_tensor(tree.func, node):
        return True
    return any(_has_tensor(each, node) for each in ast.iter_child_nodes(tree))


def bound(node: Node) -> dict[str, Any]:
    """Return what names are bound to where an operator was called."""
    names: dict[str, Any] = node.meta.get(LOCALS, {})
    return names


def is_tensor(word: str, node: Node) -> bool:
    """Return whether a name is bound to a tensor where an operator was called."""
    return isinstance(bound(node).get(word), tuple)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)  # a path too, which is written as it is


def moved(expression: Expression, to: Node, paths: Mapping[int, str]) -> str | None:
    """Return the text of an expression that has the same value where another operator was called; None if no name has.

    A name counts if it is bound there to the same object, or if another name is, or if it is a module, by `paths`, in
    one that has a name there.
    """
    here, there, names = bound(expression.node), bound(to), dict[str, str]()
    is_far = frames(expression.node)[0].file != frames(to)[0].file
    for word in {each.id for each in ast.walk(expression.tree) if isinstance(each, ast.Name)}:
        if word not in here:
            if word in there or (is_far and word not in MODULES and not hasattr(builtins, word)):
                return None
        elif there.get(word) != here[word]:
            other = _same(here[word], there, paths)
            if not other:
                return None
            names[word] = other
    if not names and not is_far:
        return expression.text
    return ast.unparse(_Renamed(names).visit(ast.parse(expression.text, mode="eval").body))


def _same(value: Any, names: Mapping[str, Any], paths: Mapping[int, str]) -> str:
    """Return a name for a tensor or a module; empty without one."""
    if isinstance(value, tuple):
        return next((each for each, its in names.items() if its == value), "")
    for each, its in names.items():
        if not isinstance(its, tuple) and its in paths and value in paths:
            inner = paths[value].removeprefix(f"{paths[its]}." if paths[its] else "")
            if inner != paths[value] or not paths[its]:
                return f"{each}.{inner}" if all(part.isidentifier() for part in inner.split(".")) else ""
    return ""
