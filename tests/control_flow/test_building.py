"""Small pieces of syntax trees."""

import ast

import pytest

from calque.control_flow import building as b


def text(node):
    return ast.unparse(ast.fix_missing_locations(node))


@pytest.mark.parametrize(
    "node, want",
    [
        (b.name("x"), "x"),
        (b.attribute("x", "y"), "x.y"),
        (b.call(b.attribute("x", "y"), [b.name("z"), ast.Constant(1)]), "x.y(z, 1)"),
        (b.thunk(b.name("x")), "lambda *_cq_args: x"),
        (b.set_flag("done", True), "done = True"),
        (b.any_of(["a"]), "a"),
        (b.any_of(["a", "b", "c"]), "a or b or c"),
        (b.none_of(["a", "b"]), "not (a or b)"),
        (b.none_of(["a"]), "not a"),
    ],
)
def test_as_python_writes_it(node, want):
    assert text(node) == want


def test_what_has_no_place_gets_the_users():
    (user,) = ast.parse("\n\n  \nx = 1").body
    inner = ast.copy_location(ast.Constant(2, lineno=99, col_offset=7), user.value)
    inner.lineno = 99
    made = b.located(b.call(b.name("f"), [inner]), user)
    assert made.lineno == made.func.lineno == user.lineno and inner.lineno == 99
    namespace = {}
    module = ast.Module([b.located(b.set_flag("flag", False), user)], [])
    exec(compile(module, "f", "exec"), namespace)
    assert namespace["flag"] is False
