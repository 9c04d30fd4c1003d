"""What the tests of emission share: operations run on arrays of awkward sizes, folds and their
orders, functions written by hand."""

import numpy as np

from calque.machine.code import llvm
from calque.native.emit.making import compile_kernels
from calque.native.loops.tree import (
    Acc,
    For,
    Store,
)
from calque.native.loops.verify import verify
from calque.native.scalars.expr import (
    const,
    ex,
    load,
    ref,
    var,
)
from tests.native.run_kernel import (
    FLOATS,
    INTS,
    NP,
    array,
    bits,
    call,
    random,
    words,
)

SIZES = (0, 1, 15, 16, 17, 33, 64, 65, 100)
LENGTHS = (0, 1, 15, 16, 17, 31, 63, 64, 65, 130, 1000)
ALL = ("i1", *INTS, *FLOATS)
ORDERS = {"serial": "sequential", "vector": "blocked"}
n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
rng = np.random.default_rng(0)


def f32(v):
    return const(v, "f32")


def c(v):
    return const(v)


def maps(op, dtypes, out):
    """A serial and a vector kernel of ``out[i] = op(x0[i], ...)``."""
    xs = [array(f"x{k}", d, n) for k, d in enumerate(dtypes)]
    y = array("y", out, n)
    e = op(*[load(x, (i,)) for x in xs])
    return (
        xs,
        y,
        [
            (For(i, (Store(y, (i,), e),), (), kind, w),)
            for kind, w in (("serial", 1), ("vector", 32))
        ],
    )


def check(op, dtypes, out, meaning, make=None, sizes=SIZES, zeros=True):
    xs, y, bodies = maps(op, dtypes, out)
    for b in bodies:
        verify(b, xs)
    rng = np.random.default_rng(1)
    for k in compile_kernels(bodies):
        for size in sizes:
            args = make(size, rng) if make else [random(d, (size,), rng) for d in dtypes]
            for a in args[1:]:
                rng.shuffle(a)
            got = np.full(size + 1, 1, NP[out])
            call(k.address, words(k, {**dict(zip(xs, args, strict=True)), y: got, "n": size}))
            with np.errstate(all="ignore"):
                want = np.asarray(meaning(*args)).astype(NP[out])
            if not zeros:  # which zero is not said
                got[:size] += NP[out](0)
                want += NP[out](0)
            np.testing.assert_array_equal(
                bits(got[:size]), bits(want), err_msg=f"{dtypes} -> {out}, {size}"
            )
            assert got[size] == 1


def arithmetic(op):
    return lambda *a: ex(op, *a)


def ordered_sum(x, op=np.add, start=0):
    """The order of a vector loop: blocks of 64 folded to 16 lanes by halves."""
    x = np.asarray(x)
    acc = np.full(16, start, x.dtype)
    for k in range(0, len(x), 64):
        b = np.full(64, start, x.dtype)
        b[: len(x) - k] = x[k : k + 64]
        b = op(b[:32], b[32:])
        acc = op(acc, op(b[:16], b[16:]))
    w = 8
    while w:
        acc = op(acc[:w], acc[w : 2 * w])
        w //= 2
    return acc[0]


def reduction(op, dtype, kind="vector", width=64, init=None):
    x, y = array("x", dtype, n), array("y", dtype)
    return (
        x,
        y,
        (
            For(i, (), (Acc("a", op, load(x, (i,)), init=init, order=ORDERS[kind]),), kind, width),
            Store(y, (), ref("a", dtype)),
        ),
    )


def address_of(w, head, end="ret void"):
    """The machine code of a function `f` that a writer has written."""
    text = "\n".join([*sorted(w.declared), w.text(head, end)])
    return llvm.link_module(text, ["f"], {}, cache=False)["f"]
