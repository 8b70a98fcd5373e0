"""Branches of a source that a call didn't take."""

import ast
from collections.abc import Iterator

from torch.fx import Node

from bench.modules.graph.cores import Core
from bench.modules.graph.operands import between
from bench.modules.graph.syntax import parsed, written
from bench.modules.graph.tracing import frames


def not_taken(core: Core) -> list[str]:
    """Return each `if` between a core's products whose body would have changed what is computed, with its line.

    It counts if the call ran nothing of it, and if it assigns a name that the lines that ran use.
    """
    function = _function(core.node)
    if function is None:
        return []
    ran = _ran(core, function)
    return [words for each in _ifs(function, ran, core) for words in _bodies(each, ran, function, core.node)]


def taken_by(node: Node, core: Core, other: Core) -> ast.expr | None:
    """Return the condition under which an operator of a core ran that another core of that source doesn't have.

    None if it is no branch of the function in which the core's last product is.
    """
    function, line = _function(core.node), frames(node)[0].line
    if function is None or not _has(function, line):
        return None
    ran, never = _ran(core, function), _ran(other, function)
    for branch in _ifs(function, ran, core):
        if any(_has(each, line) for each in branch.body):
            is_other = any(_has(each, at) for each in branch.body for at in never)
            return None if is_other else branch.test
    return None


def _ran(core: Core, function: ast.FunctionDef) -> set[int]:
    """Return the lines of a function that ran between a core's products."""
    nodes, file = between(core.first, core.node), frames(core.node)[0].file
    every = {frame.line for node in nodes for frame in frames(node) if frame.file == file}
    return {line for line in every if _has(function, line)}


def _ifs(function: ast.FunctionDef, ran: set[int], core: Core) -> list[ast.If]:
    end = frames(core.node)[0].line
    return [each for each in ast.walk(function) if isinstance(each, ast.If) and min(ran) <= each.lineno <= end]


def _function(node: Node) -> ast.FunctionDef | None:
    """Return the innermost function of the source in which an operator was called; None without one."""
    for at in frames(node)[:1]:
        tree = None if at.end_line is None else parsed(at.file)[1]
        every = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)] if tree else []
        return max((each for each in every if _has(each, at.line)), key=lambda each: each.lineno, default=None)
    return None


def _has(tree: ast.stmt, line: int) -> bool:
    return tree.lineno <= line <= (tree.end_lineno or 0)


def _bodies(branch: ast.If, ran: set[int], function: ast.FunctionDef, last: Node) -> Iterator[str]:
    test = written(last, branch.test)
    for body, words in ((branch.body, f"`if {test}`"), (branch.orelse, f"the `else` of `if {test}`")):
        computes = any(isinstance(each, ast.Call | ast.BinOp) for of in body for each in ast.walk(of))
        if not computes or any(_has(each, line) for each in body for line in ran):
            continue  # what computes nothing may have run
        changed = {name for each in body for name in _assigned(each)}
        rest = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.lineno in ran]
        if changed & {each.id for each in rest} and not _is_refusal(body):
            yield f"{words} (line {branch.lineno})"


def _assigned(statement: ast.stmt) -> set[str]:
    names = set()
    for each in ast.walk(statement):
        match each:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr.endswith("_"):
                names.add(name)
    return names


def _is_refusal(body: list[ast.stmt]) -> bool:
    return all(isinstance(each, ast.Raise | ast.Assert | ast.Pass) for each in body)
