"""The rewriting of a function: branches and loops become calls of `Scope`, operators calls of
`running`.

    if p:                  def _cq_then(): nonlocal y; y = a
        y = a       ->     def _cq_else(): nonlocal y; y = b
    else:                  _cq_scope.if_(p, _cq_then, _cq_else, lambda: (y,), line)
        y = b

The bodies stay where they stood, with the lines of the file, and set the variables of the function
through its own cells; the lambda is never called: it holds the cells of the variables that the
bodies change. So on concrete values nothing differs from Python.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from calque.control_flow.building import attribute, call, located, name, no_arguments, thunk
from calque.control_flow.jumps import without_jumps
from calque.control_flow.names import (
    assigned,
    contains,
    declared,
    is_generator,
    mutated,
    parameters,
    root,
    set_inside,
)

RUNTIME: Final = "_cq_run"
CALLEE: Final = "_cq_callee"
_SCOPE: Final = "_cq_scope"
_FRAME_FUNCTIONS: Final = frozenset(
    ("super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint", "__import__")
)
_COMPARISONS: Final = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
Body = list[ast.stmt]


def rewritten(
    node: ast.FunctionDef | ast.Lambda, package: str, owner: str | None, free: Sequence[str]
) -> ast.FunctionDef | ast.Lambda:
    """`node` for traced values. `owner` is the class around it, `free` are its variables from
    outside."""
    if owner is not None:
        Mangler(owner).visit(node)
    rewriter = Rewriter(package, owner is not None or "__class__" in free, set(free))
    if isinstance(node, ast.Lambda):
        return rewriter.visit_Lambda(node)
    node.decorator_list, node.returns = [], None
    for a in ast.walk(node.args):
        if isinstance(a, ast.arg):
            a.annotation = None
    return rewriter.function(node)


class Mangler(ast.NodeTransformer):
    """Private names as Python spells them inside a class."""

    def __init__(self, owner: str) -> None:
        self.prefix = f"_{owner.lstrip('_')}"

    def spelled(self, text: str) -> str:
        return self.prefix + text if text.startswith("__") and not text.endswith("__") else text

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.spelled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self.spelled(node.attr)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.spelled(node.arg)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.arg = node.arg and self.spelled(node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.spelled(node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


class Frame:
    """What is known of the function whose body is being rewritten."""

    def __init__(self, own: set[str], outer: set[str], shared: set[str]) -> None:
        self.own, self.globals = own, outer
        self.shared = shared  # variables that functions inside set
        self.depth = 0  # how many branches and loops are around
        self.used = False  # does it need a Scope?


class Rewriter(ast.NodeTransformer):
    def __init__(self, package: str, in_class: bool, free: set[str]) -> None:
        self.package, self.in_class, self.free = package, in_class, free
        self.frames: list[Frame] = []
        self.first: str | None = (
            None  # the parameter of the outermost function that `super()` means
        )

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    # ------------------------------------------------------------ functions

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if not self.frames and (node.args.posonlyargs or node.args.args):
            self.first = [*node.args.posonlyargs, *node.args.args][0].arg
        params = parameters(node.args)
        outer, elsewhere = declared(node.body, ast.Global), declared(node.body, ast.Nonlocal)
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body = without_jumps(node.body[len(doc) :], node) if node.body[len(doc) :] else []
        own = assigned(body) - outer
        frame = Frame(own | params, outer, set_inside(body))
        self.frames.append(frame)
        body = self.statements(body)
        self.frames.pop()
        start: Body = []
        if outer:
            start.append(ast.Global(sorted(outer)))
        if elsewhere:
            start.append(ast.Nonlocal(sorted(elsewhere)))
        if frame.used:
            body = self.in_scope(body, own - params - elsewhere)
        node.body = [*doc, *[located(s, node) for s in [*start, *body]]] or [
            located(ast.Pass(), node)
        ]
        return node

    def in_scope(self, body: Body, own: set[str]) -> Body:
        """The body with a Scope, every variable a local one of the function, and the reasons of
        unset variables told."""
        new: Body = []
        if own:
            targets: list[ast.expr] = [name(n, ast.Store()) for n in sorted(own)]
            new.append(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        new.append(ast.Assign([name(_SCOPE, ast.Store())], call(attribute(RUNTIME, "Scope"), [])))
        explain = ast.Expr(call(attribute(_SCOPE, "explain"), [name("_cq_error")]))
        handler = ast.ExceptHandler(
            attribute(RUNTIME, "Unset"), "_cq_error", [explain, ast.Raise()]
        )
        return [*new, ast.Try(body, [handler], [], [])]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if is_generator(node) else self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        if not is_generator(node):
            self.frames.append(Frame(parameters(node.args), set(), set()))
            node.body = self.visit(node.body)
            self.frames.pop()
        return node

    def statements(self, body: Sequence[ast.stmt]) -> Body:
        new: Body = []
        for s in body:
            found = self.visit(s)
            new += found if isinstance(found, list) else [found]
        return new

    # ------------------------------------------------------------ branches and loops

    def changed(self, body: Sequence[ast.AST]) -> ast.expr:
        """`lambda: (x, y)` of the variables that these statements change."""
        visible = self.free.union(*[f.own for f in self.frames])
        shared = set().union(*[f.shared & f.own for f in self.frames])
        found = (assigned(body) - self.frame.globals) | (mutated(body) & visible) | shared
        return thunk(ast.Tuple([name(n) for n in sorted(found)], ast.Load()))

    def extracted(
        self, title: str, body: Sequence[ast.stmt], argument: str | None = None
    ) -> ast.FunctionDef:
        """A function of these statements, which sets the variables of the one around."""
        names = assigned(body)
        self.frame.depth += 1
        new = self.statements(body)
        self.frame.depth -= 1
        start: Body = []
        if names & self.frame.globals:
            start.append(ast.Global(sorted(names & self.frame.globals)))
        if names - self.frame.globals:
            start.append(ast.Nonlocal(sorted(names - self.frame.globals)))
        args = no_arguments()
        if argument is not None:
            args.args = [ast.arg(argument)]
        return located(ast.FunctionDef(title, args, [*start, *new], []), body[0])

    def scope_call(
        self, method: str, args: Sequence[ast.expr], at: ast.stmt, place: ast.AST | None = None
    ) -> ast.stmt:
        """A call of the Scope for the statement `at`; tracebacks show `place`."""
        self.frame.used = True
        line = ast.Constant(at.lineno)
        return located(ast.Expr(call(attribute(_SCOPE, method), [*args, line])), place or at)

    def visit_If(self, node: ast.If) -> Any:
        changed = self.changed([*node.body, *node.orelse])
        test = self.visit(node.test)
        defined: Body = [self.extracted("_cq_then", node.body)]
        other: ast.expr = ast.Constant(None)
        if node.orelse:
            defined.append(self.extracted("_cq_else", node.orelse))
            other = name("_cq_else")
        return [
            *defined,
            self.scope_call("if_", [test, name("_cq_then"), other, changed], node, node.test),
        ]

    def visit_While(self, node: ast.While) -> Any:
        changed = self.changed(node.body)
        test = ast.FunctionDef("_cq_test", no_arguments(), [ast.Return(self.visit(node.test))], [])
        body = self.extracted("_cq_body", node.body)
        run = self.scope_call(
            "while_", [name("_cq_test"), name("_cq_body"), changed], node, node.test
        )
        return [located(test, node.test), body, run]

    def visit_For(self, node: ast.For) -> Any:
        take = located(ast.Assign([node.target], name("_cq_item")), node.target)
        body = [take, *node.body]
        changed = self.changed(body)
        stop: ast.expr = ast.Constant(None)
        if getattr(node, "stop", None) is not None:
            stop = thunk(self.visit(node.stop))  # type: ignore[attr-defined]
        iterable = self.visit(node.iter)
        defined = self.extracted("_cq_body", body, "_cq_item")
        return [
            defined,
            self.scope_call("for_", [iterable, name("_cq_body"), changed, stop], node, node.iter),
        ]

    # ------------------------------------------------------------ other statements

    def visit_Global(self, node: ast.Global) -> Any:
        return located(ast.Pass(), node)  # declared at the top of the function

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        return located(ast.Pass(), node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        if node.exc is not None and self.frame.depth:
            self.frame.used = True
            line = ast.Constant(node.lineno)
            node.exc = located(call(attribute(_SCOPE, "raising"), [node.exc, line]), node)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        line = ast.Constant(node.lineno)
        node.test = located(call(attribute(RUNTIME, "asserted"), [node.test, line]), node.test)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        checks = self.stores(node.targets, node)
        return [*checks, self.generic_visit(node)]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        checks = self.stores([node.target], node)
        return [*checks, self.generic_visit(node)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        checks = self.stores(node.targets, node)
        return [*checks, self.generic_visit(node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        checks = self.stores([node.target], node)
        self.generic_visit(node)
        if isinstance(
            node.target, ast.Name
        ):  # a variable that is annotated cannot be one of an outer function
            plain = ast.Assign([node.target], node.value) if node.value is not None else ast.Pass()
            return [*checks, located(plain, node)]
        return [*checks, node]

    def stores(self, targets: Sequence[ast.expr], at: ast.stmt) -> Body:
        """Checks before stores into objects: a branch that is only traced must not change them."""
        if not self.frame.depth:
            return []
        found: Body = []
        for target in targets:
            for n in [target, *_parts(target)]:
                outside = isinstance(n, ast.Name) and n.id in self.frame.globals
                if isinstance(n, (ast.Attribute, ast.Subscript)) or outside:
                    base = root(n) if isinstance(n, ast.Subscript) else None
                    visible = self.free.union(*[f.own for f in self.frames])
                    holder = (
                        n.value
                        if isinstance(n, ast.Subscript) and _is_path(n.value)
                        else ast.Constant(None)
                    )
                    copied = ast.Constant(base is not None and base in visible)
                    if copied.value:
                        holder = name(str(base))
                    found.append(
                        self.scope_call("store", [holder, copied, ast.Constant(ast.unparse(n))], at)
                    )
        return found

    # ------------------------------------------------------------ expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        first, *rest = [self.visit(v) for v in node.values]
        if contains(node.values[1:], ast.NamedExpr):
            node.values = [first, *rest]
            return node
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        return located(call(attribute(RUNTIME, function), [first, *map(thunk, rest)]), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return located(call(attribute(RUNTIME, "not_"), [node.operand]), node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 or contains(node.comparators, ast.NamedExpr):
            return node
        pairs: list[ast.expr] = []
        for op, value in zip(node.ops, node.comparators):
            pairs += [ast.Constant(_COMPARISONS[type(op)]), thunk(value)]
        return located(call(attribute(RUNTIME, "compare"), [node.left, *pairs]), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if contains([node.body, node.orelse], ast.NamedExpr):
            return node
        args = [node.test, thunk(node.body), thunk(node.orelse), ast.Constant(node.lineno)]
        return located(call(attribute(RUNTIME, "choose"), args), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Name) and f.id in _FRAME_FUNCTIONS:
            if f.id == "super" and not node.args and self.in_class and self.first is not None:
                node.args = [located(name("__class__"), node), located(name(self.first), node)]
            return node
        if (
            isinstance(f, ast.Attribute)
            and isinstance(f.value, ast.Name)
            and f.value.id.startswith("_cq_")
        ):
            return node
        node.func = located(call(name(CALLEE), [f, ast.Constant(self.package)]), f)
        return node


def _parts(target: ast.expr) -> list[ast.expr]:
    """The single targets of `a, (b, *c) = ...`."""
    if isinstance(target, ast.Starred):
        return [target.value, *_parts(target.value)]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [x for e in target.elts for x in (e, *_parts(e))]
    return []


def _is_path(node: ast.expr) -> bool:
    """Whether it is `a.b.c`, which can be evaluated once more."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
