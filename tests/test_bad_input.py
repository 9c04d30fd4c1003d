"""Bad and odd input: a clear exception or the right answer, never a crash, never a silent wrong
value.

What could kill the process is tried in a process of its own."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax

ROOT = Path(__file__).parent.parent
add = calque.jit(lambda x, y: x + y)
V = np.arange(6, dtype=np.float32)

REFUSED: dict[str, tuple[Callable[[], Any], type | tuple[type, ...], str]] = {
    "shapes differ": (lambda: add(np.ones(3), np.ones(4)), (TypeError, ValueError), r"\(?3"),
    "shapes differ, eager": (lambda: jnp.ones(3) + jnp.ones(4), (TypeError, ValueError), r"3"),
    "a list": (lambda: jnp.sin([1.0, 2.0]), TypeError, "list"),
    "a tuple": (lambda: jnp.add((1, 2), 3), TypeError, "tuple"),
    "a string": (lambda: add("a", 1), TypeError, "str"),
    "None": (lambda: add(None, 1), TypeError, "None"),
    "an object": (lambda: add(object(), 1), TypeError, "object"),
    "an object array": (lambda: add(np.array([1, None], object), 1), TypeError, "object"),
    "a string array": (lambda: jnp.asarray(np.array(["a", "b"])), TypeError, "<U1|str"),
    "dates": (lambda: jnp.asarray(np.array(["2020-01-01"], "M8[D]")), TypeError, "datetime"),
    "records": (lambda: add(np.zeros(3, [("a", "i4"), ("b", "f4")]), 1), TypeError, ""),
    "ragged lists": (lambda: jnp.array([[1, 2], [3]]), (TypeError, ValueError), ""),
    "a large int": (lambda: add(jnp.int32(1), 2**40), OverflowError, "too large"),
    "a static that cannot be hashed": (lambda: calque.jit(lambda x, n: x, static_argnums=1)(1.0,
    [1, 2]), (TypeError, ValueError), "hash"),
    "a static array": (lambda: calque.jit(lambda x, n: x, static_argnums=1)(1.0, jnp.ones(3)),
    (TypeError, ValueError), "hash"),
    "too few arguments": (lambda: add(1), TypeError, "missing|argument"),
    "too many arguments": (lambda: add(1, 2, 3), TypeError, "argument"),
    "an unknown keyword": (lambda: add(1, 2, z=3), TypeError, "z"),
    "a result that is no array": (lambda: calque.jit(lambda x: "text")(1), TypeError, "str"),
    "a negative shape": (lambda: jnp.zeros((-1,)), (TypeError, ValueError), "negative|-1"),
    "a float shape": (lambda: jnp.zeros((2.5,)), TypeError, ""),
    "a huge shape": (lambda: jnp.zeros((1 << 40, 1 << 20)), (MemoryError, ValueError,
    OverflowError), ""),
    "a huge shape, jitted": (lambda: calque.jit(lambda: jnp.zeros((1 << 40,)))(), MemoryError, ""),
    "a huge product": (lambda: calque.jit(lambda x: jnp.broadcast_to(x, (1 << 30, 1 << 30)))(1.0),
    (MemoryError, OverflowError), ""),
    "a wrong axis": (lambda: jnp.sum(V, axis=1), ValueError, "axis|out of"),
    "a repeated axis": (lambda: jnp.sum(jnp.ones((2, 2)), axis=(0, 0)), ValueError,
    "axis|duplicate"),
    "a wrong reshape": (lambda: jnp.reshape(V, (4,)), (TypeError, ValueError), "6|4"),
    "a wrong permutation": (lambda: jnp.transpose(jnp.ones((2, 3)), (0, 0)), (TypeError,
    ValueError), ""),
    "a wrong product": (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), (TypeError, ValueError), "3"),
    "pieces that differ": (lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))], 0),
    (TypeError, ValueError), ""),
    "pieces of nothing": (lambda: jnp.concatenate([]), ValueError, ""),
    "a float index": (lambda: jnp.ones(3)[1.5], (TypeError, IndexError), ""),
    "a string index": (lambda: jnp.ones(3)["a"], (TypeError, IndexError), ""),
    "too many indices": (lambda: jnp.ones(3)[0, 0], IndexError, "ind"),
    "a mask of another shape": (lambda: jnp.ones(3)[np.array([True, False])], IndexError, ""),
    "a carry that changes its type": (lambda: lax.scan(lambda c, x: (c.astype(jnp.int32), x),
    jnp.float32(0), V), TypeError, "carry"),
    "a carry that changes its shape": (lambda: lax.fori_loop(0, 3, lambda i,
    c: jnp.concatenate([c, c]), V), TypeError, ""),
    "branches that differ": (lambda: lax.cond(True, lambda x: x, lambda x: x.astype(jnp.int32),
    V), TypeError, ""),
    "lengths that differ": (lambda: lax.scan(lambda c, x: (c, x[0]), 0, (np.ones(3), np.ones(4))),
    (TypeError, ValueError), ""),
    "the truth of an array": (lambda: bool(jnp.ones(3)), (TypeError, ValueError), ""),
    "an int of an array": (lambda: int(jnp.ones(3)), TypeError, ""),
    "the grad of an int": (lambda: calque.grad(lambda x: x * 2)(3), TypeError, "int"),
    "the grad of a vector": (lambda: calque.grad(lambda x: x * 2)(jnp.ones(3)), TypeError,
    "scalar"),
    "vmap over sizes that differ": (lambda: calque.vmap(lambda x, y: x + y)(np.ones(3),
    np.ones(4)), ValueError, "3|4"),
    "vmap over a scalar": (lambda: calque.vmap(lambda x: x)(1.0), ValueError, ""),
    "assignment": (lambda: jnp.ones(3).__setitem__(0, 1), TypeError, "at"),
    "a hash": (lambda: hash(jnp.ones(3)), TypeError, "unhashable"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    fun, kinds, words = REFUSED[name]
    with pytest.raises(kinds, match=words or None):
        fun()
    np.testing.assert_array_equal(add(V, V), V + V)  # and nothing is broken


def readonly(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned() -> np.ndarray:
    return np.frombuffer(b"\0" + V.tobytes(), np.uint8)[1:].view(np.float32)


ODD: dict[str, np.ndarray] = {
    "strided": np.arange(12, dtype=np.float32)[::2],
    "backwards": V[::-1],
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "broadcast": np.broadcast_to(np.float32(3), (6,)),
    "read-only": readonly(V),
    "byte-swapped": V.astype(">f4"),
    "swapped ints": np.arange(6, dtype=">i4"),
    "unaligned": unaligned(),
    "Fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "doubles": np.arange(6.0),
    "longs": np.arange(6),
    "empty": np.zeros((0, 3), np.float32),
    "no dimensions": np.array(2.5, np.float32),
    "masked": np.asarray(np.ma.array([1.0, 2.0], mask=[0, 0])),
    "a matrix": np.asarray(np.eye(2)),
    "special": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32),
    "bools": np.array([True, False]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays(name: str) -> None:
    """Right through jit, eagerly, by asarray; twice, since the second call takes another path; and
    never changed."""
    x = ODD[name]
    before = x.copy()
    want = x.astype(
        calque.dtypes.canonicalize_dtype(x.dtype) if hasattr(calque, "dtypes") else x.dtype
    )
    f = calque.jit(lambda x: (x + x, x))
    for _ in range(3):
        double, same = f(x)
        np.testing.assert_array_equal(np.asarray(same).astype(x.dtype), want.astype(x.dtype))
        np.testing.assert_array_equal(
            np.asarray(double).astype(np.float64), np.asarray(want + want).astype(np.float64)
        )
        np.testing.assert_array_equal(
            np.asarray(jnp.asarray(x) + 0).astype(np.float64), want.astype(np.float64)
        )
    np.testing.assert_array_equal(x, before)


def test_arguments_that_change_afterwards() -> None:
    """An array made of a NumPy array keeps its values; a jitted function reads what is there
    now."""
    x = np.ones(1000, np.float32)
    y, f = jnp.array(x), calque.jit(lambda x: x * 2)
    first = f(x)
    x[:] = 5
    assert float(y[0]) == 1 and float(first[0]) == 2 and float(f(x)[0]) == 10


EMPTY = ((0,), (0, 3), (3, 0), (2, 0, 4))


@pytest.mark.parametrize("shape", EMPTY, ids=str)
def test_empty_arrays_everywhere(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    functions: list[Callable[..., Any]] = [
        lambda x: jnp.sin(x) + 1, lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.prod(-1),
        lambda x: x.T, lambda x: x[::-1], lambda x: jnp.sort(x),
        lambda x: jnp.cumsum(x, 0), lambda x: jnp.concatenate([x, x]), lambda x: x.reshape(-1),
        lambda x: x @ x.swapaxes(-1, -2) if x.ndim > 1 else x @ x,
        lambda x: x.mean(), lambda x: jnp.where(x > 0, x, 1), lambda x: x.astype(jnp.int8),
        lambda x: jnp.pad(x, 1), lambda x: x.at[...].set(1),
        lambda x: lax.scan(lambda c, v: (c + v.sum(), v), 0.0, x),
        lambda x: calque.grad(lambda x: jnp.sum(x * x))(x), lambda x: jnp.tile(x, 3),
        lambda x: jnp.stack([x, x]), lambda x: jnp.broadcast_to(x, (2, *x.shape)),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c + 1, x), lambda x: x.std(),
        lambda x: jnp.any(x), lambda x: jnp.all(x),
        lambda x: calque.random.normal(calque.random.key(0), x.shape), lambda x: x.flatten()[:0],
    ]  # fmt: skip
    if shape[0]:
        functions.append(lambda x: calque.vmap(lambda v: v + 1)(x))
    for i, f in enumerate(functions):
        a, b = (
            calque.tree_util.tree_leaves(calque.jit(f)(x)),
            calque.tree_util.tree_leaves(f(jnp.asarray(x))),
        )
        for g, w in zip(a, b, strict=True):
            assert g.shape == w.shape and g.dtype == w.dtype, i
            np.testing.assert_array_equal(g, w, err_msg=str(i))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"empty|zero-size|identity"):
        getattr(jnp, name)(jnp.zeros((0, 3)), axis=0)


# ---------------------------------------------------------------- exceptions in host calls


class Odd(Exception):
    pass


def failing(x: Any) -> Any:
    raise Odd("from the callback")


@pytest.mark.parametrize("where", ["plain", "scan", "cond", "while", "vmap"])
def test_exceptions_of_callbacks_come_back(where: str) -> None:
    def call(x):
        return calque.pure_callback(failing, calque.ShapeDtypeStruct(x.shape, x.dtype), x)

    programs: dict[str, Callable[..., Any]] = {
        "plain": call,
        "scan": lambda x: lax.scan(lambda c, v: (c + call(v), v), jnp.float32(0), x)[0],
        "cond": lambda x: lax.cond(x[0] >= 0, call, lambda x: x, x),
        "while": lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: call(c) + 1, x),
        "vmap": calque.vmap(
            lambda v: calque.pure_callback(
                failing, calque.ShapeDtypeStruct((), v.dtype), v, vmap_method="sequential"
            )
        ),
    }
    f = calque.jit(programs[where])
    for _ in range(3):
        with pytest.raises(Odd, match="from the callback"):
            np.asarray(f(V))
    np.testing.assert_array_equal(add(V, V), V + V)


@pytest.mark.parametrize(
    "result", ["text", None, np.zeros(3), np.zeros(6, np.float64), [1, 2]], ids=str
)
def test_wrong_results_of_callbacks(result: Any) -> None:
    f = calque.jit(
        lambda x: calque.pure_callback(
            lambda x: result, calque.ShapeDtypeStruct((6,), np.float32), x
        )
    )
    try:
        out = np.asarray(f(V))
    except (TypeError, ValueError, RuntimeError):
        return
    np.testing.assert_array_equal(out, np.zeros(6))  # doubles may be taken as floats


# ---------------------------------------------------------------- what might kill the process

DANGEROUS: dict[str, str] = {
    "indices out of range": """
        x = jnp.arange(10.0)
        for i in (10**9, -10**9, 2**31 - 1, -2**31):
            for f in (lambda x, i: x[i], lambda x, i: x.at[i].set(1), lambda x, i: lax.dynamic_slice(x, (i,), (3,)), lambda x, i: lax.dynamic_update_slice(x, x[:3], (i,)),
                      lambda x, i: x.at[i].add(1, mode="promise_in_bounds"), lambda x, i: x.at[i].get(mode="promise_in_bounds"), lambda x, i: jnp.take(x, i)):
                calque.jit(f)(x, i); f(x, jnp.int32(i))
    """,
    "division by zero": """
        for d in ("int8", "int32", "uint8", "uint32"):
            x = jnp.array([0, 1, np.iinfo(d).min], d); y = jnp.array([0, 0, -1 if d[0] == "i" else 1], d)
            for f in (lambda x, y: x // y, lambda x, y: x % y, lax.div, lax.rem, jnp.divmod):
                calque.jit(f)(x, y); f(x, y)
    """,
    "much memory": """
        for f in (lambda: jnp.zeros((1 << 45,)), lambda: jnp.ones((1 << 31, 1 << 31)), calque.jit(lambda: jnp.arange(1 << 30).reshape(1, -1) + jnp.zeros((1 << 20, 1), int))):
            try: f()
            except (MemoryError, OverflowError, ValueError): pass
            else: raise AssertionError("not refused")
    """,
    "deep nesting": """
        x = 1.0
        for _ in range(3000): x = (x,)
        try: calque.jit(lambda t: calque.tree_util.tree_leaves(t)[0])(x)
        except (RecursionError, ValueError, TypeError): pass
    """,
    "a program of many equations": """
        def f(x):
            for i in range(5000): x = x * 1.0001 + 1e-7
            return x
        calque.jit(f)(1.0)
    """,
    "a list that holds itself": """
        a = []; a.append(a)
        try: calque.jit(lambda t: t)(a)
        except (RecursionError, ValueError, TypeError): pass
    """,
    "arguments that change while they are looked at": """
        class Odd:
            def __array__(self, *a, **k): raise ValueError("no")
        f = calque.jit(lambda x: x + 1)
        for bad in (Odd(), type, len, {1: object()}, b"bytes", 1 << 100, -(1 << 100), memoryview(b"abc"), slice(None), Ellipsis, NotImplemented):
            try: f(bad)
            except (TypeError, ValueError, OverflowError): pass
            else: raise AssertionError(f"{bad} was taken")
        f(float("nan")); f(True); f(3); f(2.5j)
    """,
    "calls from inside a callback": """
        f = calque.jit(lambda x: x * 2)
        g = calque.jit(lambda x: calque.pure_callback(lambda x: np.asarray(f(x)), calque.ShapeDtypeStruct((3,), np.float32), x))
        for _ in range(50): assert np.asarray(g(np.ones(3, np.float32)))[0] == 2
    """,
    "donated arrays": """
        f = calque.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(1000)
        y = f(x)
        try: np.asarray(x)
        except RuntimeError: pass
        try: f(x)
        except (RuntimeError, ValueError): pass
        assert float(y[0]) == 2
    """,
    "much memory, in every way": """
        n, x = 1 << 45, jnp.ones(3)
        eager = [lambda: jnp.ones((n,)), lambda: jnp.full((n,), 2.0), lambda: jnp.arange(n), lambda: jnp.eye(1 << 23), lambda: jnp.tile(x, n), lambda: jnp.repeat(x, n),
                 lambda: jnp.broadcast_to(x, (n, 3)) + 1, lambda: calque.random.normal(calque.random.key(0), (n,)), lambda: jnp.zeros((1 << 62, 1 << 62)),
                 lambda: jnp.outer(jnp.ones(1 << 22), jnp.ones(1 << 22)), lambda: jnp.pad(x, (0, n)), lambda: jnp.zeros((2**63,)), lambda: jnp.linspace(0, 1, n),
                 lambda: jnp.concatenate([jnp.broadcast_to(x, (n, 3))] * 2), lambda: jnp.empty((n,), jnp.int8), lambda: lax.iota(jnp.float32, n),
                 lambda: calque.nn.one_hot(jnp.arange(1 << 22), 1 << 22), lambda: jnp.zeros((n, 0, n)).sum() + jnp.zeros((n,))]
        small = calque.jit(lambda x: x + 1)
        for i, f in enumerate(eager):
            for g in (f, calque.jit(f)):
                try: g()
                except (MemoryError, OverflowError, ValueError, TypeError): pass
                else: raise AssertionError(f"{i} was not refused")
                assert float(small(x)[0]) == 2
    """,
    "bad calls from many threads": """
        import threading
        add, cache = calque.jit(lambda x, y: x + y), calque.jit(lambda x, n: x * n, static_argnums=1)
        bad = [lambda: add(np.ones(3), np.ones(4)), lambda: add("a", 1), lambda: add(np.array([1, None], object), 1), lambda: cache(1.0, [1]), lambda: jnp.zeros((1 << 45,)),
               lambda: add([1, 2], object()), lambda: jnp.ones(3)[0, 0], lambda: jnp.reshape(jnp.ones(6), (4,)), lambda: add(1 << 40, jnp.int32(1))]
        wrong = []
        def work(seed):
            for i in range(60):
                f = bad[(i * (2 * seed + 1) + seed) % len(bad)]
                try: f()
                except (TypeError, ValueError, MemoryError, OverflowError, IndexError): pass
                except BaseException as e: wrong.append(repr(e))
                else: wrong.append(f"{i} was taken")
                n = (i + seed) % 9 + 1
                if np.asarray(add(np.ones(n, np.float32), 1.0)).tolist() != [2.0] * n: wrong.append("a wrong value")
                if float(cache(2.0, n)) != 2.0 * n: wrong.append("another wrong value")
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong, wrong[:3]
    """,
    "bad calls after a fork": """
        import os
        add, grow = calque.jit(lambda x, y: x + y), calque.jit(lambda x, n: x @ x.T * n, static_argnums=1)
        x = jnp.ones((300, 300)); grow(x, 1)
        def bad():
            for f in (lambda: add(np.ones(3), np.ones(4)), lambda: add("a", 1), lambda: grow(x, [1]), lambda: jnp.zeros((1 << 45,)), lambda: add(np.array([None]), 1)):
                try: f()
                except (TypeError, ValueError, MemoryError): pass
                else: return False
            return float(add(1.0, 2.0)) == 3 and float(grow(x, 2)[0, 0]) == 600 and float(calque.jit(lambda x: x.sum() * 7)(x)) == 630000
        children = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                ok = False
                try: ok = bad()
                finally: os._exit(0 if ok else 1)
            children.append(pid)
        assert bad()
        assert [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in children] == [0, 0, 0]
    """,
    "donation from many threads": """
        import threading
        f, g = calque.jit(lambda x: x + 1, donate_argnums=0), calque.jit(lambda x: x.sum())
        shared = [jnp.zeros(50_000) + 0 for _ in range(40)]
        wrong = []
        def work():
            for x in shared:
                try:
                    a = float(g(x)); y = f(x)
                except RuntimeError as e:
                    if "deleted" not in str(e) and "donate" not in str(e): wrong.append(repr(e))
                    continue
                if a != 0 or float(g(y)) != 50_000: wrong.append((a, float(g(y))))
        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong and all(x.is_deleted() for x in shared), wrong[:3]
    """,
    "collected in the middle": """
        import gc
        f = calque.jit(lambda xs: [x + 1 for x in xs])
        for i in range(300):
            out = f([np.ones(i % 7 + 1, np.float32), jnp.ones(3), 2.0]); del out
            if i % 50 == 0: gc.collect(); calque.clear_caches()
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", DANGEROUS)
def test_the_process_survives(name: str) -> None:
    code = (
        "import sys, numpy as np, calque, calque.numpy as jnp\nfrom calque import lax\n"
        + textwrap.dedent(DANGEROUS[name])
        + "\nprint('alive')"
    )
    path = f"{ROOT / 'src'}"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "alive" in done.stdout, (done.returncode, done.stderr[-2000:])


def test_components_that_differ_are_named():
    x = jnp.ones(3)
    with pytest.raises(
        TypeError, match=r"no counterpart of the input carry c\['b'\], and .* output carry c\['z'\]"
    ):
        lax.scan(lambda c, _: ({"w": c["w"], "z": c["b"]}, None), {"w": x, "b": x}, x)
    with pytest.raises(TypeError, match=r"there is no counterpart of the output of false_fun\[1\]"):
        lax.cond(True, lambda: (x,), lambda: (x, x))
    with pytest.raises(
        ValueError,
        match=r"different numbers of pytree children at key path\n    vmap in_axes\[0\]\['p'\]",
    ):
        calque.vmap(lambda d: d, in_axes=({"p": {"w": 0}},))({"p": {"w": x, "b": x}})

    def scaled(p):
        return p

    with pytest.raises(
        ValueError,
        match=r"`axis_size` argument was 4;\n.*size 3: axis 0 of argument p\['w'\] .*\nin scaled",
    ):
        calque.vmap(scaled, axis_size=4)({"w": x})
    with pytest.raises(ValueError, match="or axis_size must be specified"):
        calque.vmap(lambda: x)()


def test_what_is_not_linear_is_placed():
    f = calque.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(p[0]), jnp.sin(t[0])))

    def looped(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    for call in (
        lambda: calque.grad(f)(2.0),
        lambda: calque.jit(calque.grad(looped))(2.0),
        lambda: calque.linear_transpose(lambda x: jnp.sin(x), 1.0)(1.0),
    ):
        with pytest.raises(
            NotImplementedError,
            match=rf"sin is not linear.*\nThe operation sin stands at {__file__}:\d+",
        ) as e:
            call()
        assert str(e.value).count("stands at") == 1
