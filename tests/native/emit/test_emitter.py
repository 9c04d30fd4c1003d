"""The LLVM text of small kernels, one for each thing the emitter can do (``--update-golden``
rewrites it)."""

import os
import pathlib

import numpy as np
import pytest

from calque.native.emit import emitter
from calque.native.emit.math_functions import MathFunction
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Acc, Fold, For, If, Let, LoopValue, Out, Recurrence, Store
from calque.native.loops.verify import verify
from calque.native.scalars.expr import cast, const, ex, load, make, ref, var
from tests.native.run_kernel import array

GOLDENS = pathlib.Path(__file__).parent / "goldens"
n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
ZERO, ONE = const(0), const(1)


def over_lanes(*body, accs=(), width=8):
    return (For(i, body, accs, "vector", width),)


def transposed():
    x, y = array("x", "f32", m, n), array("y", "f32", n, m)
    columns = For(j, (Store(y, (i, j), load(x, (j, i))),), (), "vector", 4)
    return (For(i, (columns,), (), "tile", 4),)


def conjugated():
    x, y = array("x", "f32", n, 2), array("y", "f32", n, 2)
    re, im = load(x, (i, ZERO)), load(x, (i, ONE))
    return over_lanes(Store(y, (i, ZERO), re), Store(y, (i, ONE), ex("neg", im)))


def gathered():
    """Reads at given places, backwards, at every third place, and under guards."""
    p, x, y = array("p", "i32", n), array("x", "f64", m), array("y", "f64", n)
    at = cast(load(p, (i,)), "i64")
    back = load(x, (ex("sub", ex("sub", n, ONE), i),), ex("lt", i, m))
    third = load(x, (ex("mul", i, const(3)),))
    e = ex("add", ex("add", load(x, (at,), ex("lt", at, m)), back), third)
    return over_lanes(Store(y, (i,), e, ex("ne", load(p, (i,)), const(7, "i32"))))


def parting():
    """Lanes part at a condition."""
    x, y = array("x", "f32", n), array("y", "f32", n)
    v = load(x, (i,))
    positive = ex("gt", v, const(0.0, "f32"))
    chosen = If(positive, (Let("r", ex("sqrt", v)),), (), (Out("o", ref("r", "f32"), v),))
    return over_lanes(chosen, Store(y, (i,), ref("o", "f32")))


def collatz():
    """Lanes that end at different rounds."""
    x, y = array("x", "i64", n), array("y", "i64", n)
    a, steps = ref("a", "i64"), ref("s", "i64")
    odd = ex("ne", ex("and", a, ONE), ZERO)
    following = ex("select", odd, ex("add", ex("mul", a, const(3)), ONE), ex("ashr", a, ONE))
    states = (LoopValue("a", load(x, (i,)), following), LoopValue("s", ZERO, ex("add", steps, ONE)))
    return over_lanes(Recurrence(states, (), cond=ex("gt", a, ONE)), Store(y, (i,), steps))


def counted():
    """States in a loop that is counted, around a side that is seldom taken."""
    x, y = array("x", "f32", n), array("y", "f32", 1)
    s, v = ref("s", "f32"), load(x, (i,))
    following = make("rare", (ex("gt", v, s), ex("add", s, v), ex("sqrt", v)), "f32")
    loop = Recurrence((LoopValue("s", const(0.0, "f32"), following),), (), var=i)
    return (loop, Store(y, (ZERO,), s))


def running():
    x, y = array("x", "f32", n), array("y", "f32", n)
    total = Acc("s", "sum", load(x, (i,)), running=True)
    return over_lanes(Store(y, (i,), ref("s", "f32")), accs=(total,), width=16)


def largest():
    """Where the largest element is: a fold of two values."""
    x, y = array("x", "f32", n), array("y", "i64", 1)
    a, b = [[ref(f"{side}.{part}", d) for part, d in (("m", "f32"), ("i", "i64"))] for side in "lr"]
    first = ex("ge", a[0], b[0])
    combine = (ex("select", first, a[0], b[0]), ex("select", first, a[1], b[1]))
    start = (const(float("-inf"), "f32"), const(-1))
    fold = Fold(("m", "at"), start, (load(x, (i,)), i), tuple(a), tuple(b), combine)
    return (*over_lanes(accs=(fold,), width=64), Store(y, (ZERO,), ref("at", "i64")))


def halves():
    x, y, z = array("x", "f16", n), array("y", "bf16", n), array("z", "f16", n)
    v = cast(load(x, (i,)), "f32")
    return over_lanes(Store(y, (i,), cast(v, "bf16")), Store(z, (i,), ex("neg", load(x, (i,)))))


def math():
    """A function in line in whole vectors, called in the rest."""
    x, y = array("x", "f32", n), array("y", "f32", n)
    return over_lanes(Store(y, (i,), make("exp2", (load(x, (i,)),), "f32")))


def tables():
    """Constants of the kernel, and memory of its own for each lane."""
    numbers = np.arange(4, dtype="f4")
    c = array("c", "f32", 4, place="const", data=numbers.tobytes())
    t, y = array("t", "f32", 4, place="lane"), array("y", "f32", n)
    k = var("k", 4)
    fill = For(k, (Store(t, (k,), ex("mul", load(c, (k,)), cast(i, "f32"))),))
    return over_lanes(fill, Store(y, (i,), ex("add", load(t, (ZERO,)), load(t, (const(3),)))))


def divided():
    """Indices by a constant and by a size; integers in lanes that may not exist."""
    x, y = array("x", "i32", m, 5), array("y", "i32", n)
    row, column = ex("floordiv", i, const(5)), ex("mod", i, const(5))
    v = load(x, (ex("mod", row, m), column))
    return over_lanes(Store(y, (i,), ex("sdiv", const(100, "i32"), v)))


KERNELS = {
    f.__name__: f
    for f in (
        transposed, conjugated, gathered, parting, collatz, counted, running, largest, halves,
        math, tables, divided,
    )
}  # fmt: skip


def written(body, **options):
    verify(body)
    order = canonical(body)
    f = emitter.write_kernel(
        "kernel", order.buffers, order.sizes, order.params, body, emitter.CodeOptions(**options)
    )
    return f


def check(name, f):
    path = GOLDENS / f"{name}.ll"
    text = "\n".join([*sorted(f.declared), f.text, ""])
    if os.environ.get("CALQUE_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", KERNELS)
def test_text(name):
    check(name, written(KERNELS[name]()))


@pytest.mark.parametrize("name", ["gathered", "halves", "conjugated"])
def test_text_for_plainer_processors(name):
    check(f"{name}_plain", written(KERNELS[name](), avx512=False, half=False))


def test_text_of_a_shared_math_function():
    f = MathFunction("exp2", ("f32",), "f32", 8)
    check("exp2", emitter.write_shared(f, emitter.CodeOptions(exact=True, tag="_o2")))


def test_writing_twice_gives_the_same_text():
    for make_body in KERNELS.values():
        body = make_body()
        assert written(body).text == written(body).text


def test_an_operation_without_code_is_refused():
    x, y = array("x", "f32", n), array("y", "f32", n)
    body = over_lanes(Store(y, (i,), make("frobnicate", (load(x, (i,)),), "f32")))
    order = canonical(body)
    with pytest.raises(TypeError, match="no code for frobnicate of f32"):
        emitter.write_kernel(
            "k", order.buffers, order.sizes, order.params, body, emitter.CodeOptions()
        )
