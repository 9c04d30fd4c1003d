import gc
import threading

import numpy as np
import pytest

from calque.native.lower.layout import guarded
from calque.native.scalars import expr
from calque.native.scalars.expr import (
    FALSE,
    TRUE,
    ZERO,
    Buffer,
    both,
    cast,
    const,
    const_value,
    either,
    ex,
    index_and_guard,
    invert,
    is_const,
    linear,
    load,
    make,
    param,
    pool_size,
    ref,
    rewrite,
    select,
    show,
    stride,
    terms,
    var,
    walk,
)
from calque.native.scalars.ranges import OF_DTYPE, interval

n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)


def c(v):
    return const(v)


def test_interned():
    assert ex("add", i, j) is ex("add", i, j)
    assert const(0.0, "f32") is not const(-0.0, "f32")
    assert const(1, "i32") is not const(True, "i1")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, float("inf"), float("-inf")])
def test_float_constants_keep_their_bits(dtype, value):
    v = const_value(const(value, dtype))
    assert v == value and np.signbit(v) == np.signbit(value)


def test_constants_round_and_wrap():
    assert np.isnan(const_value(const(float("nan"), "bf16")))
    assert const_value(const(1e300, "f32")) == float("inf")
    assert (
        const(300, "i8").attr == 44
        and const(200, "i8").attr == -56
        and const(-1, "u16").attr == 65535
    )


def test_dtypes_are_checked():
    with pytest.raises(TypeError, match="add does not take"):
        ex("add", const(1, "i32"), c(1))
    with pytest.raises(TypeError):
        ex("floor", const(1, "i32"))
    with pytest.raises(TypeError):
        cast(const(1.0, "f32"), "i64", "bitcast")
    with pytest.raises(TypeError):
        const(1, "f8")


def test_reshape_undone():
    at = linear((n, m), (i, j))
    assert ex("floordiv", at, m) is i
    assert ex("mod", at, m) is j
    k = var("k", 12)
    back = ex("add", ex("mul", ex("floordiv", k, c(4)), c(4)), ex("mod", k, c(4)))
    assert back is k
    assert linear((n, m), (ex("floordiv", i, m), ex("mod", i, m))) is i


def test_reshapes_of_many_dimensions_undone():
    """Small sizes are numbers, and a quotient of a quotient by numbers is one quotient."""

    def apart(k, sizes):
        out = []
        for d in reversed(sizes[1:]):
            out.append(ex("mod", k, d))
            k = ex("floordiv", k, d)
        return [k, *reversed(out)]

    k = var("k", 100_000)
    for sizes in ((c(3), c(3), c(16), m), (c(2), c(3), c(4), c(5)), (n, c(3), m, c(7), c(2))):
        assert linear(sizes, tuple(apart(k, sizes))) is k


def test_reshapes_of_the_last_dimensions_undone():
    """Also where rows of sizes stand before them."""
    k, apart = (
        var("k"),
        (ex("floordiv", ex("floordiv", var("k"), m), m), ex("mod", ex("floordiv", var("k"), m), m)),
    )
    last = ex("mod", k, m)
    row = linear((n, n, m), (i, ex("floordiv", k, m), last))
    assert stride(row, "k") == 1 and set(terms(row)[0]) == {k, ex("mul", ex("mul", i, n), m)}
    assert stride(linear((n, m, m, m), (i, *apart, last)), "k") == 1
    shifted = linear((n, n, m), (i, ex("add", ex("floordiv", k, m), c(2)), ex("add", last, j)))
    assert stride(shifted, "k") == 1 and stride(shifted, "j") == 1
    for other in (
        (i, ex("floordiv", k, n), last),
        (i, ex("floordiv", k, m), ex("mul", last, c(2))),
    ):
        assert stride(linear((n, n, m), other), "k") is None


def test_vectors_that_lie_in_one_row_of_a_size():
    first = ex("mul", i, c(16))
    at = ex("add", first, var("l", 16))
    e = ex("add", ex("mul", ex("floordiv", ex("floordiv", at, m), m), n), ex("mod", at, m))
    e = ex("add", e, ex("floordiv", at, n))
    one = expr.aligned(e, first, var("l", 16), lambda size: size is m)
    assert stride(one, "l") is None  # n is no multiple
    assert stride(expr.aligned(e, first, var("l", 16), lambda size: True), "l") == 1
    assert expr.aligned(e, first, var("l", 16), lambda size: False) is e


def test_mixed_radix_of_constants():
    a, b = var("a", 3), var("b", 5)
    at = ex("add", ex("mul", a, c(10)), ex("add", ex("mul", b, c(2)), c(1)))
    assert ex("floordiv", at, c(10)) is a
    assert ex("mod", at, c(10)) is ex("add", ex("mul", b, c(2)), c(1))
    assert ex("floordiv", ex("floordiv", n, c(3)), c(4)) is ex("floordiv", n, c(12))


def test_ranges_decide():
    last = ex("sub", n, c(1))
    assert ex("lt", i, n) is TRUE and ex("ge", i, ZERO) is TRUE
    assert ex("min", i, last) is i and ex("max", ZERO, i) is i
    back = ex("sub", last, i)
    assert ex("lt", back, n) is TRUE and ex("ge", back, ZERO) is TRUE
    k = var("k", 10)
    assert (
        ex("lt", k, c(10)) is TRUE and ex("lt", k, c(9)) is not TRUE and ex("ge", k, c(10)) is FALSE
    )
    assert ex("eq", k, c(11)) is FALSE


def test_user_integers_are_left_alone():
    x = param("x", "i64")
    y = ex("add", x, c(1))
    assert ex("lt", x, y).op == "lt"  # false when x is the largest integer
    assert interval(ex("mul", x, x)) == OF_DTYPE["i64"]
    narrow = cast(param("w", "i32"), "i64")
    cube = ex("mul", ex("mul", narrow, narrow), narrow)
    assert interval(ex("mul", narrow, narrow))[1] == 1 << 62 and interval(cube) == OF_DTYPE["i64"]


def test_clamped_indices_have_ranges():
    x = cast(param("w", "i32"), "i64")
    clamped = ex("max", ZERO, ex("min", x, c(9)))
    assert interval(clamped) == (0, 9) and ex("lt", clamped, c(10)) is TRUE
    y = param("y", "i64")
    clamped = ex("max", ZERO, ex("min", y, c(9)))
    assert interval(clamped) == (0, 9)


def test_random_index_algebra_keeps_values():
    rng = np.random.default_rng(0)
    names = {"n": 7, "m": 4, "i": 6, "j": 3, "k": 11}
    leaves = [n, m, i, j, var("k", 12), c(0), c(1), c(3), c(4), c(12)]
    for _ in range(1500):
        todo, plain = [], []
        for _ in range(4):
            a = leaves[rng.integers(len(leaves))]
            todo.append(a)
            plain.append(a.attr if a.op == "const" else names[a.attr[0]])
        for _ in range(5):
            p, q = rng.integers(len(todo), size=2)
            op = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "lt", "ge", "eq")[
                rng.integers(10)
            ]
            if op in ("floordiv", "mod") and (
                plain[p] < 0 or plain[q] <= 0 or interval(todo[p])[0] < 0
            ):
                continue
            e = ex(op, todo[p], todo[q])
            v = FOLD[op](plain[p], plain[q])
            assert value(e, names) == v, (show(e), op)
            assert interval(e)[0] <= v <= interval(e)[1]
            if e.dtype == "i64":
                todo.append(e)
                plain.append(v)


FOLD = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "min": min, "max": max, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a,
    b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


def value(e, names):
    if e.op == "const":
        return e.attr
    if e.op == "var":
        return names[e.attr[0]]
    return FOLD[e.op](*[value(a, names) for a in e.args])


def test_strides():
    x = ex("add", ex("mul", i, c(4)), ex("sub", c(9), j))
    assert stride(x, "i") == 4 and stride(x, "j") == -1 and stride(x, "z") == 0
    assert stride(ex("mul", i, n), "i") is None
    assert stride(ex("mod", i, c(3)), "i") is None


def test_logic():
    a, b = ref("a", "i1"), ref("b", "i1")
    assert (
        both(a, TRUE) is a
        and both(FALSE, a) is FALSE
        and either(a, TRUE) is TRUE
        and either(a, FALSE) is a
    )
    assert invert(invert(a)) is a
    assert select(TRUE, i, j) is i and select(a, i, i) is i
    x, y = param("x", "f32"), param("y", "f32")
    assert invert(ex("lt", x, y)).op == "not"  # nan: neither less nor not less
    assert invert(ex("eq", x, y)) is ex("ne", x, y)
    assert ex("and", a, b) is both(a, b)


def test_float_operations_are_kept():
    x = param("x", "f32")
    zero = const(0.0, "f32")
    for op in ("add", "sub", "mul"):
        assert ex(op, x, zero).op == op
    assert ex("add", zero, zero).op == "add"


def test_casts():
    x = param("x", "f32")
    assert cast(x, "f32") is x
    assert cast(cast(x, "i32", "bitcast"), "f32", "bitcast") is x
    assert cast(const(3, "i32"), "f32") is const(3.0, "f32")
    assert cast(const(3, "i32"), "i1") is TRUE
    assert cast(param("k", "i8"), "i32", "cast_fast").op == "cast"
    assert cast(x, "i1").op == "cast" and cast(param("k", "i8"), "i1").op == "ne"


def test_deep_chains():
    x = param("x", "f32")
    e = x
    for k in range(50_000):
        e = ex("add", e, const(float(k), "f32"))
    assert sum(1 for _ in walk(e, set())) == 100_000 + 1
    y = param("y", "f32")
    new = rewrite(e, {x: y}.get, {})
    assert new.names == {"y"} and new.depth == e.depth
    assert rewrite(e, lambda _: None, {}) is e
    assert len(show(e)) < 10_000
    before = pool_size()
    del e, new
    gc.collect()
    assert pool_size() < before - 100_000


def test_long_sums_are_linear():
    e = param("x", "i64")
    for k in range(5000):
        e = ex("add", e, param(f"y{k}", "i64"))
    assert len(terms(e)[0]) > 0


def test_load_and_guard():
    b = Buffer("b", (n, 3), "f16")
    e = load(b, (i, c(2)))
    assert e.dtype == "f16" and e.bufs == {b} and e.names == {"i"}
    assert load(b, (i, c(2)), TRUE) is e
    with pytest.raises(ValueError):
        load(b, (i,))
    assert load(Buffer("q", (n,), "float8_e4m3fn"), (i,)).dtype == "u8"
    with pytest.raises(TypeError):
        load(Buffer("q", (n,), "complex64"), (i,))
    with pytest.raises(ValueError):
        Buffer("s", (n,), "f32", "stack")


def test_show():
    b = Buffer("b", (n,), "f32")
    e = ex("add", load(b, (i,), ref("ok", "i1")), const(0.5, "f32"))
    assert show(e) == "(b[i] if ok + 0.5)"
    assert (
        show(cast(i, "f32")) == "f32(i)"
        and show(ex("fma", *[const(-0.0, "f64")] * 3)) == "fma(-0.0, -0.0, -0.0)"
    )


def test_threads_share_one_pool():
    found = []

    def work():
        found.append([make("probe", (const(k),), "i64") for k in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for column in zip(*found, strict=True):
        assert all(e is column[0] for e in column)
    assert is_const(const(2.0, "f16"), 2.0)


def test_what_guards_a_load_is_guarded_too() -> None:
    """A load stands under a condition that loads; under a second condition neither is done where
    that one fails."""
    places, values = Buffer("p", (8,), "i64"), Buffer("v", (8,), "f32")
    i, ok = var("i", 16), ex("lt", var("i", 16), const(8))
    inner = ex("lt", load(places, [i]), const(8))
    found = guarded(load(values, [load(places, [i], inner)], inner), ok)
    loads = [e for e in walk(found, set()) if e.op == "load"]
    assert sorted(e.attr.name for e in loads) == ["p", "p", "v"]
    for e in loads:
        _, guard = index_and_guard(e)
        assert guard is not None and ok in walk(guard, set())


def test_index_expressions_are_worked_out_once() -> None:
    i, n = var("memo_i", var("memo_n")), var("memo_n")
    first = ex("add", ex("mul", i, n), const(3))
    before = expr._index.cache_info()
    assert ex("add", ex("mul", i, n), const(3)) is first
    after = expr._index.cache_info()
    assert (after.hits - before.hits, after.misses) == (2, before.misses)
