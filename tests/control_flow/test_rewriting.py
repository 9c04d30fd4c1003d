"""The rewriting of a function: what stands in the place of branches, loops and operators."""

import ast
import textwrap

import pytest

import calque
from calque.control_flow.rewriting import Mangler, rewritten


def shown(source, owner=None, free=()):
    (node,) = ast.parse(textwrap.dedent(source)).body
    return ast.unparse(rewritten(node, "own", owner, free))


def test_branches_are_functions_of_the_scope():
    text = shown("""
        def f(p, a, b):
            if p:
                y = a
            else:
                y = b
            return y
    """)
    assert "def _cq_then():\n            nonlocal y\n            y = a" in text
    assert "def _cq_else():\n            nonlocal y\n            y = b" in text
    assert "_cq_scope.if_(p, _cq_then, _cq_else, lambda *_cq_args: (y,), 3)" in text
    assert "if False:\n        y = None" in text and "_cq_scope = _cq_run.Scope()" in text


def test_loops_are_too():
    text = shown("""
        def f(n):
            total = 0
            for i in range(n):
                if i > 3:
                    break
                total = total + i
            while total > 2:
                total -= 1
            return total
    """)
    assert "def _cq_body(_cq_item):" in text and "i = _cq_item" in text
    assert "_cq_scope.for_(_cq_callee(range, 'own')(n), _cq_body, lambda *_cq_args: (" in text
    assert "def _cq_test():\n            return total > 2" in text.replace(
        "    return", "    return"
    )
    assert "_cq_scope.while_(_cq_test, _cq_body, lambda *_cq_args: (total,)" in text
    assert "_cq_broken_1" in text and "break" not in text


@pytest.mark.parametrize(
    "expression, want",
    [
        ("a and b", "_cq_run.and_(a, lambda *_cq_args: b)"),
        ("a or b or c", "_cq_run.or_(a, lambda *_cq_args: b, lambda *_cq_args: c)"),
        ("not a", "_cq_run.not_(a)"),
        ("a < b", "a < b"),
        (
            "a < b <= c",
            "_cq_run.compare(a, '<', lambda *_cq_args: b, '<=', lambda *_cq_args: c)",
        ),
        ("a if b else c", "_cq_run.choose(b, lambda *_cq_args: a, lambda *_cq_args: c, 1)"),
        ("a and (x := b)", "a and (x := b)"),
        ("f(a)", "_cq_callee(f, 'own')(a)"),
        ("a.b(c)", "_cq_callee(a.b, 'own')(c)"),
        ("locals()", "locals()"),
        ("-a", "-a"),
    ],
)
def test_expressions(expression, want):
    assert shown(f"def f(a, b, c): return {expression}").endswith(f"return {want}")


def test_statements_that_know_their_line():
    text = shown("""
        def f(p, box):
            assert p
            if p:
                box.x = 1
                box[0] = 2
                raise ValueError(3)
    """)
    assert "assert _cq_run.asserted(p, 3)" in text
    assert "_cq_scope.store(None, False, 'box.x', 5)" in text
    assert "_cq_scope.store(box, True, 'box[0]', 6)" in text
    assert "raise _cq_scope.raising(_cq_callee(ValueError, 'own')(3), 7)" in text
    assert "store" not in shown("def f(box):\n box.x = 1\n return box")  # in no branch


def test_functions_that_branch_nowhere_need_no_scope():
    assert shown("def f(x):\n    return x + 1") == "def f(x):\n    return x + 1"
    inside = shown("def f(x):\n    g = lambda y: y if y else x\n    return g(x)")
    assert "_cq_scope" not in inside and "lambda y: _cq_run.choose(y" in inside


def test_private_names_are_spelled_as_inside_the_class():
    node = ast.parse("self.__x + __y + obj.__init__(k__=__z)", mode="eval")
    assert ast.unparse(Mangler("_Own").visit(node)) == (
        "self._Own__x + _Own__y + obj.__init__(k__=_Own__z)"
    )
    text = shown("def m(self): return super().m(self.__x)", owner="Own", free=("__class__",))
    assert "super(__class__, self).m" in text and "self._Own__x" in text


def test_generators_stay():
    def f(n):
        def items():
            for i in range(n):
                if i:
                    yield i

        return sum(items())

    assert calque.convert(f)(4) == 6
    source = "def f(n):\n    def g():\n        if n:\n            yield n\n    return g"
    assert "_cq_" not in shown(source)


def test_globals_and_nonlocals_are_declared_once_at_the_top():
    text = shown("""
        def f(p):
            global G
            if p:
                G = 1
            return G
    """)
    assert text.count("global G") == 2 and text.index("global G") < text.index("_cq_scope")
    assert "nonlocal" not in text
