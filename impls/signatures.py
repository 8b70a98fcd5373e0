"""The parameters of any callable: also of builtins, operators and autograd functions, which have no signature."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import Parameter
from typing import Any

import torch
from torch import nn

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a function, an instance, a module's forward, or a class; none if nothing states them."""
    return next(filter(None, _stated(function)), [])


def _stated(function: Callable[..., Any]) -> Iterator[list[Parameter]]:
    """Yield what each source states of a function's parameters, the best source first."""
    if isinstance(function, partial):
        yield _of_partial(function)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and function == owner.apply:
        yield _of_apply(owner)
    if not isinstance(function, type) and (schema := _schema(function)) is not None:
        yield _of_schema(schema)
    with suppress(TypeError, ValueError):
        signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
        if not all(each.kind in VARIABLE for each in signature.parameters.values()):
            yield [*signature.parameters.values()]
    yield _of_docstring(function)
    with suppress(TypeError, ValueError, KeyError):
        yield [*inspect.signature(torch.overrides.get_testing_overrides()[function]).parameters.values()]


def _of_partial(function: "partial[Any]") -> list[Parameter]:
    def stands_in() -> None: ...

    stands_in.__signature__ = inspect.Signature(parameters_of(function.func))  # type: ignore[attr-defined]
    with suppress(TypeError, ValueError):
        return [*inspect.signature(partial(stands_in, *function.args, **function.keywords)).parameters.values()]
    return []


def _of_apply(owner: type[torch.autograd.Function]) -> list[Parameter]:
    """Return the parameters of `apply`, which takes those of `forward` by position."""
    has_context = owner.setup_context is torch.autograd.Function.setup_context
    forward = [*inspect.signature(owner.forward).parameters.values()][has_context:]
    return [each.replace(kind=Parameter.POSITIONAL_ONLY) if each.kind in POSITIONAL else each for each in forward]


def _schema(function: Any) -> Any:
    """Return the schema of an operator, a custom operator or a scripted function; None for anything else."""
    if isinstance(function, torch._ops.OpOverloadPacket):
        function = getattr(function, function.overloads()[0])
    function = getattr(function, "_opoverload", function)
    return getattr(function, "_schema" if isinstance(function, torch._ops.OpOverload) else "schema", None)


def _of_schema(schema: Any) -> list[Parameter]:
    with suppress(AttributeError, TypeError, ValueError):
        return [
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY if each.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD,
                default=each.default_value if each.has_default_value() else Parameter.empty,
            )
            for each in schema.arguments
        ]
    return []


def _of_docstring(function: Any) -> list[Parameter]:
    """Return the parameters that a docstring begins with, as C++ functions state them: `name(q, k=None) -> Tensor`."""
    name, text = getattr(function, "__name__", ""), inspect.getdoc(function) or ""
    match = re.match(rf"(?:\w+\.)*{re.escape(name)}(\(.*?\))\s*(?:->.*)?$", text, re.DOTALL | re.MULTILINE)
    if not (name and match):
        return []
    made: dict[str, Any] = {}
    with suppress(SyntaxError, ValueError):
        tree = ast.parse(f"def {name}{match[1]}: ...")
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = None
        arguments = tree.body[0].args  # type: ignore[attr-defined]  # the body is the function
        for defaults in (arguments.defaults, arguments.kw_defaults):
            defaults[:] = [each and ast.Constant(_literal(each)) for each in defaults]
        exec(compile(ast.fix_missing_locations(tree), name, "exec"), made)  # noqa: S102 - a head without any code
        return [*inspect.signature(made[name]).parameters.values()]
    return []


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
