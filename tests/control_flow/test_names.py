"""What statements bind and change, held against Python's own tables of symbols."""

import ast
import symtable

import pytest

from calque.control_flow import names

BODIES = [
    "a = 1",
    "a, (b, *c) = x",
    "for i in x:\n    y = i",
    "with f() as (g, h):\n    pass",
    "try:\n    pass\nexcept E as e:\n    pass",
    "def inner():\n    local = 1",
    "class C:\n    attribute = 1",
    "import os.path, sys as system\nfrom a import b as c",
    "del a",
    "a += 1\nb: int = 2",
    "[z for z in x]\n{k: v for k, v in x}",
    "(w := 3)",
    "f = lambda q: q",
    "match x:\n    case [p, *rest]:\n        pass\n    case {'k': v, **others}:\n        pass",
]


@pytest.mark.parametrize("body", BODIES)
def test_bound_as_python_says(body):
    text = "def function(x, E, f):\n" + "\n".join("    " + line for line in body.split("\n"))
    scopes = symtable.symtable(text, "test", "exec").get_children()
    table = next(s for s in scopes if s.get_name() == "function")  # 3.14: one of annotations, too
    want = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    want |= {s.get_name() for s in table.get_symbols() if s.is_namespace()}
    if body == "del a":
        want = {"a"}
    statements = ast.parse(text).body[0].body
    # From 3.12 on the tables list what an inlined comprehension binds; it stays inside it still.
    want -= {
        name.id
        for node in ast.walk(ast.Module(statements, []))
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }
    found = names.assigned(statements)
    assert found - {"x"} == {n for n in want if not n.startswith(".")} - {"x"}


@pytest.mark.parametrize(
    "body, changed",
    [
        ("x[0] = 1", {"x"}),
        ("x[i][j] += 1", {"x"}),
        ("del x[0]", {"x"}),
        ("x.append(1); y.update(z)", {"x", "y"}),
        ("x.count(1); z[0]", set()),
        ("x.a[0] = 1", set()),
        ("def f():\n    x[0] = 1", set()),
    ],
)
def test_changed_in_place(body, changed):
    assert names.mutated(ast.parse(body).body) == changed


def test_scopes():
    inner = ast.parse("def f():\n    nonlocal n\n    n = 1\nclass C:\n    x = yield_()").body
    assert names.set_inside(inner) == {"n"} and names.declared(inner, ast.Nonlocal) == set()
    own = ast.parse("global g\nnonlocal_ = 1").body
    assert names.declared(own, ast.Global) == {"g"}
    assert names.contains(inner, ast.ClassDef) and not names.contains(inner, ast.Return)


def test_generators_and_parameters():
    tree = ast.parse(
        "def f(a, /, b, *c, d, **e):\n    yield a\ndef g():\n    def h():\n        yield 1"
    ).body
    assert names.is_generator(tree[0]) and not names.is_generator(tree[1])
    assert names.parameters(tree[0].args) == {"a", "b", "c", "d", "e"}
