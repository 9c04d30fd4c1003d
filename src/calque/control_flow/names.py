"""Which variables statements set, and which containers they change in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from calque.transforms.jit.captures import MUTATING


def own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of these statements that run in their own scope: not the bodies of functions and
    classes inside."""
    for s in statements:
        yield s
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from own_nodes(
                [*s.decorator_list, *s.args.defaults, *[d for d in s.args.kw_defaults if d]]
            )
        elif isinstance(s, ast.Lambda):
            yield from own_nodes([*s.args.defaults, *[d for d in s.args.kw_defaults if d]])
        elif isinstance(s, ast.ClassDef):
            yield from own_nodes([*s.decorator_list, *s.bases, *[k.value for k in s.keywords]])
        else:
            yield from own_nodes(ast.iter_child_nodes(s))


def assigned(statements: Iterable[ast.AST]) -> set[str]:
    """Names that the statements bind or delete in their own scope."""
    found: set[str] = set()
    hidden: set[int] = set()  # the targets of comprehensions live in a scope of their own
    for n in own_nodes(statements):
        if isinstance(n, ast.comprehension):
            hidden.update(id(t) for t in ast.walk(n.target))
        elif isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and id(n) not in hidden:
            found.add(n.id)
        elif (
            isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            or (isinstance(n, ast.ExceptHandler) and n.name)
            or (isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name)
        ):
            found.add(str(n.name))
        elif isinstance(n, ast.MatchMapping) and n.rest:
            found.add(n.rest)
        elif isinstance(n, ast.alias):
            found.add(n.asname or n.name.split(".")[0])
    return found


def mutated(statements: Iterable[ast.AST]) -> set[str]:
    """Names whose value is changed in place: `x[i] = v`, `x.append(v)`."""
    found = set()
    for n in own_nodes(statements):
        target: ast.AST | None = None
        if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load):
            target = n
        elif (
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in MUTATING
        ):
            target = n.func.value
        name = None if target is None else root(target)
        if name is not None:
            found.add(name)
    return found


def root(target: ast.AST) -> str | None:
    """The variable of `x[i][j]`; None where attributes stand between."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def declared(
    statements: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]
) -> set[str]:
    return {name for n in own_nodes(statements) if isinstance(n, kind) for name in n.names}


def set_inside(statements: Iterable[ast.AST]) -> set[str]:
    """Variables of a function that functions inside it declare nonlocal: any call may set them."""
    return {
        name
        for s in statements
        for n in ast.walk(s)
        if isinstance(n, ast.Nonlocal)
        for name in n.names
    }


def contains(statements: Iterable[ast.AST], *kinds: type[ast.AST]) -> bool:
    return any(isinstance(n, kinds) for n in own_nodes(statements))


def is_generator(node: ast.FunctionDef | ast.Lambda) -> bool:
    body = node.body if isinstance(node.body, list) else [node.body]
    return contains(body, ast.Yield, ast.YieldFrom, ast.Await)


def parameters(args: ast.arguments) -> set[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {a.arg for a in every if a is not None}
