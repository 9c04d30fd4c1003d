"""What depends on sizes, worked out by instructions."""

import ctypes
import itertools

import pytest

from calque.machine.code import llvm
from calque.native.libraries.sizes import DECLARATIONS, FreeSizes, SizeCode, hints_for
from calque.native.scalars.expr import const, ex, var

N, M = var("n"), var("m")
EXPRESSIONS = {
    "sum": (ex("sub", ex("add", N, ex("mul", M, const(3))), const(5)), lambda n, m: n + 3 * m - 5),
    "quotient": (ex("floordiv", ex("sub", N, const(9)), M), lambda n, m: (n - 9) // m),
    "rest": (ex("mod", ex("sub", N, const(9)), M), lambda n, m: (n - 9) % m),
    "least": (ex("min", N, ex("add", M, const(1))), lambda n, m: min(n, m + 1)),
    "most": (ex("max", ex("sub", N, M), const(0)), lambda n, m: max(n - m, 0)),
    "given": (ex("mul", var("s"), N), lambda n, m: 40 * n),
}


def compiled(name, e):
    code = SizeCode({"n": "%n", "m": "%m", "s": 40})
    value = code.value(e)
    wrong = code.failed() or "false"
    code.lines.append(f" store i64 {value}, ptr %out\n %said = zext i1 {wrong} to i64")
    head = f"define i64 @{name}(i64 %n, i64 %m, ptr %out) {{"
    text = "\n".join([*DECLARATIONS, head, *code.lines, " ret i64 %said\n}"])
    address = llvm.link_module(text, [name], cache=False)[name]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 2, ctypes.c_void_p)(address)

    def call(n, m):
        out = ctypes.c_int64()
        return function(n, m, ctypes.addressof(out)), out.value

    return call


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_those_of_python(name):
    e, meaning = EXPRESSIONS[name]
    call = compiled(f"size_{name}", e)
    for n, m in itertools.product((1, 2, 5, 9, 10, 1 << 40), (1, 3, 7, 1000)):
        assert call(n, m) == (0, meaning(n, m))


def test_what_does_not_fit_is_told():
    call = compiled("size_square", ex("mul", ex("mul", N, N), M))
    assert call(1 << 20, 3) == (0, 3 << 40)
    assert call(1 << 32, 3)[0] == 1
    assert call(1 << 30, 16)[0] == 1


def test_a_division_by_what_is_not_positive_is_told():
    call = compiled("size_ratio", ex("floordiv", N, ex("sub", M, const(4))))
    assert call(9, 6) == (0, 4)
    assert call(9, 4)[0] == call(9, 1)[0] == 1


def test_sizes_serve_what_gives_the_same_answers():
    sizes = FreeSizes(("n", "m"), (100, 7))
    n, m = sizes.symbols.sizes()
    assert n > m and n % 4 == 0
    assert sizes.serves((12, 3)) and not sizes.serves((3, 12)) and not sizes.serves((13, 3))
    texts = [text for *_, text in sizes.guards()]
    assert texts == ["-n + m < 0", "mod(n, 4) == 0"]


def test_sizes_to_trace_with():
    one, two = hints_for(1), hints_for(2)
    assert (1,) in one and len(set(one)) == len(one)
    usual = two[0]
    assert usual[0] != usual[1] and usual[::-1] in two and (1, 1) in two
    assert any(a == b > 1 for a, b in two)
    assert all(len(row) == 12 for row in hints_for(12))
    assert len(set(hints_for(12)[0])) == 12
