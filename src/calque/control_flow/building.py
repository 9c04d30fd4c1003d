"""Small pieces of syntax trees. What has no place yet gets the one of the user's statement that it
stands for."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)


def located(node: N, at: ast.AST) -> N:
    """The tree with the place of `at` wherever it has none."""
    for n in ast.walk(node):
        if "lineno" in n._attributes and getattr(n, "lineno", None) is None:
            ast.copy_location(n, at)
    return node


def name(text: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(text, context or ast.Load())


def attribute(of: str, text: str) -> ast.Attribute:
    return ast.Attribute(name(of), text, ast.Load())


def call(function: ast.expr, args: Sequence[ast.expr]) -> ast.Call:
    return ast.Call(function, list(args), [])


def no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`; the name of its parameter tells it from the user's."""
    args = no_arguments()
    args.vararg = ast.arg("_cq_args")
    return ast.Lambda(args, value)


def set_flag(flag: str, value: bool) -> ast.Assign:
    return ast.Assign([name(flag, ast.Store())], ast.Constant(value))


def any_of(flags: Sequence[str]) -> ast.expr:
    return name(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.Or(), [name(f) for f in flags])


def none_of(flags: Sequence[str]) -> ast.expr:
    return ast.UnaryOp(ast.Not(), any_of(flags))
