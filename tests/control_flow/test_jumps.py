"""return, break and continue written with flags: what the rewritten function does is what the
function did."""

import ast
import itertools
import textwrap

import pytest

from calque.control_flow.jumps import (
    RESULT,
    RETURNED,
    Finally,
    always_jumps,
    escaping,
    without_jumps,
)


def function(source):
    (node,) = ast.parse(textwrap.dedent(source)).body
    return node


class Scope:
    def result(self, returned, value):
        return value() if returned() else None


def without(source):
    """The function whose only `return` is at its end, and its tree. Loops over `for` honour the
    `stop` that the rewriting adds."""
    node = function(source)
    node.body = without_jumps(node.body, node)

    class Stops(ast.NodeTransformer):
        def visit_For(self, n):
            self.generic_visit(n)
            stop = getattr(n, "stop", None)
            if stop is not None:
                n.body.append(ast.If(stop, [ast.Break()], []))
            return n

    Stops().visit(node)
    module = ast.fix_missing_locations(ast.Module([node], []))
    namespace = {"_cq_scope": Scope()}
    exec(compile(module, "rewritten", "exec"), namespace)
    return namespace[node.name], node


FUNCTIONS = {
    "early returns": """
        def f(a, b, c):
            if a:
                return 1
            if b:
                if c:
                    return 2
            else:
                return 3
            return 4
    """,
    "nothing at the end": """
        def f(a, b, c):
            if a:
                return 1
            x = 2
            if b:
                x = 3
                return x
    """,
    "loops": """
        def f(a, b, c):
            seen = []
            for i in range(4):
                if a and i == 1:
                    continue
                if b and i == 2:
                    break
                if c and i == 3:
                    return ("returned", seen)
                seen.append(i)
            else:
                seen.append("else")
            return seen
    """,
    "while with else": """
        def f(a, b, c):
            i, seen = 0, []
            while i < 4:
                i += 1
                if a and i == 1:
                    continue
                if b and i == 3:
                    break
                seen.append(i)
            else:
                seen.append("else")
                if c:
                    return "from else"
            return seen
    """,
    "nested loops": """
        def f(a, b, c):
            seen = []
            for i in range(3):
                for j in range(3):
                    if a and j == 1:
                        break
                    if b and i == j == 2:
                        return (seen, i, j)
                    if c and j == 0:
                        continue
                    seen.append((i, j))
                if a and b and i == 1:
                    break
            return seen
    """,
    "a walrus in the test": """
        def f(a, b, c):
            n, seen = 0, []
            while (n := n + 1) < 5:
                if a and n == 2:
                    continue
                if b and n == 3:
                    break
                seen.append(n)
            return seen, n
    """,
    "try": """
        def f(a, b, c):
            seen = []
            try:
                if a:
                    return "tried"
                if b:
                    raise KeyError(1)
                seen.append("body")
            except KeyError:
                if c:
                    return "caught"
                seen.append("handler")
            else:
                seen.append("else")
            finally:
                seen.append("finally")
            return seen
    """,
    "with": """
        def f(a, b, c):
            import contextlib
            with contextlib.suppress(KeyError):
                if a:
                    return "inside"
                if b:
                    raise KeyError(1)
            if c:
                return "after"
            return "end"
    """,
    "match": """
        def f(a, b, c):
            match (a, b):
                case (True, True):
                    return "both"
                case (True, _):
                    x = "first"
                case _:
                    if c:
                        return "neither"
                    x = "rest"
            return x
    """,
    "no jumps": """
        def f(a, b, c):
            x = a + b
            if c:
                x += 1
            return x
    """,
    "functions inside": """
        def f(a, b, c):
            def g(x):
                for i in range(3):
                    if i == x:
                        return i
                return -1
            if a:
                return g(b)
            return g(c + 5)
    """,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_it_was_written(name):
    plain = {}
    exec(textwrap.dedent(FUNCTIONS[name]), plain)
    rewritten, node = without(FUNCTIONS[name])
    for args in itertools.product((False, True), repeat=3):
        assert rewritten(*args) == plain["f"](*args), args
    own = [n for s in node.body for n in outside_functions(s)]
    returns = [n for n in own if isinstance(n, ast.Return)]
    assert len(returns) <= 1 and (not returns or node.body[-1] is returns[0])
    assert not any(isinstance(n, ast.Continue) for n in own)


def outside_functions(node):
    yield node
    if not isinstance(node, ast.FunctionDef):
        for child in ast.iter_child_nodes(node):
            yield from outside_functions(child)


def test_flags_that_nobody_reads_are_not_set():
    _, node = without("def f(x):\n if x:\n  return 1\n else:\n  return 2")
    text = ast.unparse(node)
    assert RETURNED not in text and text.count(RESULT) == 3


def test_a_return_in_finally_is_refused():
    with pytest.raises(Finally):
        without("def f(x):\n if x:\n  try:\n   pass\n  finally:\n   return 1\n return 2")


@pytest.mark.parametrize(
    "source, kinds, always",
    [
        ("return 1", {"return"}, True),
        ("raise x", set(), True),
        ("if a:\n return 1\nelse:\n raise x", {"return"}, True),
        ("if a:\n return 1", {"return"}, False),
        ("for i in x:\n break", set(), False),
        ("for i in x:\n if i: return 1", {"return"}, False),
        ("for i in x:\n pass\nelse:\n return 1", {"return"}, False),
        ("def g():\n return 1", set(), False),
        ("with a:\n return 1", {"return"}, False),
    ],
)
def test_what_leaves_a_statement(source, kinds, always):
    body = ast.parse(source).body
    assert escaping(body[0]) == kinds and always_jumps(body) is always
    (loop,) = ast.parse("while a:\n if b: break\n else: continue").body
    assert escaping(loop.body[0]) == {"break", "continue"} and always_jumps(loop.body)
