"""Mutable arrays: eager, made in transformed functions, given to jit, closed over by control flow;
what is refused."""

import functools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, ref
from tests.peers import compare, jax


def test_reading_and_writing() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    r = ref.new_ref(x)
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((2, 3), np.float32, 2, 6, 2)
    r[0, 1] = 9.0
    r[1] += jnp.ones(3)
    assert ref.swap(r, (slice(None), 0), jnp.array([7.0, 8.0])).tolist() == [0, 4]
    ref.addupdate(r, (..., 2), jnp.array([1.0, 1.0]))
    ref.set(r, (0, -1), -1.0)
    r.addupdate(jnp.ones((2, 3)))
    assert (
        ref.get(r).tolist() == r[...].tolist() == ref.freeze(r).tolist() == [[8, 10, 0], [9, 6, 8]]
    )
    assert x[0].tolist() == [0, 1, 2] and [v.tolist() for v in r] == r[...].tolist()
    assert ref.get(r, 1).tolist() == [9, 6, 8] and r[
        jnp.array([1, 0]), jnp.array([0, 0])
    ].tolist() == [9, 8]
    assert r[np.array([True, False])].shape == (1, 3)
    assert (
        repr(ref.new_ref(jnp.ones(1))) == "Ref([1.], dtype=float32)"
        and repr(r._aval) == "Ref{float32[2,3]}"
    )
    assert r == r and r != ref.new_ref(x) and isinstance(hash(r), int)
    assert (
        ref.new_ref(1.0)[...].weak_type and calque.new_ref is ref.new_ref and calque.Ref is ref.Ref
    )
    empty = calque.empty_ref(calque.ShapeDtypeStruct((2,), jnp.int32))
    assert empty[...].dtype == np.int32
    calque.free_ref(empty)
    with pytest.raises(ValueError, match="freed"):
        _ = empty[...]


def test_refusals() -> None:
    r = ref.new_ref(jnp.zeros(3))
    values: tuple[tuple[Any, Any, str], ...] = (
        (0, 1, "Invalid dtype"), (0, 1j, "Invalid dtype"), (..., 1.0, "Invalid shape"), (slice(2),
        jnp.ones(3), "Invalid shape"), (3, 1.0, "Out of bound"),
        (-4, 1.0, "Out of bound"), ((..., 5), 1.0, "Out of bound"),
    )  # fmt: skip
    for idx, value, text in values:
        for f in (ref.set, ref.swap, ref.addupdate):
            with pytest.raises(ValueError, match=text):
                f(r, idx, value)
    assert r[...].tolist() == [0, 0, 0]
    for bad in (
        lambda: ref.new_ref([1.0]),
        lambda: ref.new_ref(r),
        lambda: jnp.sin(r),
        lambda: np.asarray(r),
        lambda: len(ref.new_ref(1.0)),
        lambda: r + 1,
    ):
        with pytest.raises(TypeError):
            bad()
    for bad in (lambda: ref.get(jnp.ones(2)), lambda: ref.freeze(1.0), lambda: ref.swap([1], 0, 1)):
        with pytest.raises(ValueError, match="on a Ref"):
            bad()
    with pytest.raises(NotImplementedError, match="memory_space"):
        ref.new_ref(1.0, memory_space="x")


def cumulated(x: Any) -> Any:
    """Made, written and read inside."""
    r = ref.new_ref(jnp.zeros(3))
    for i in range(3):
        r[i] = x[i] * (r[i - 1] + 1)
    return r[...]


def test_inside_of_transformed_functions() -> None:
    x = jnp.array([2.0, 3.0, 4.0])
    want = cumulated(x)
    assert want.tolist() == [2, 9, 40]
    assert calque.jit(cumulated)(x).tolist() == want.tolist()
    assert calque.vmap(cumulated)(jnp.stack([x, x]))[1].tolist() == want.tolist()
    assert calque.grad(lambda x: cumulated(x)[2])(x).tolist() == [12, 12, 10]
    assert calque.jacfwd(cumulated)(x).tolist() == calque.jit(calque.jacrev(cumulated))(x).tolist()


def loop(r: Any, x: Any) -> Any:
    """A scan, in it a branch and a loop, all of which touch a Ref from outside."""

    def body(c: Any, v: Any) -> Any:
        lax.cond(v > 1, lambda: ref.addupdate(r, 0, v), lambda: None)
        n = lax.while_loop(lambda k: k < 2, lambda k: (ref.addupdate(r, 1, v * c), k + 1)[1], 0)
        lax.switch(n, [lambda: None, lambda: None, lambda: ref.set(r, 2, r[2] * v)])
        return c + r[1], r[0]

    return lax.scan(body, jnp.ones(()), x)


def plain(values: Any, x: Any) -> Any:
    a, b, d = (float(v) for v in values)
    c, ys = 1.0, []
    for v in map(float, x):
        a, b, d = a + v * (v > 1), b + 2 * v * c, d * v
        c, ys = c + b, [*ys, a]
    return [a, b, d], c, ys


def test_control_flow_closes_over_them() -> None:
    x = jnp.array([0.75, 2.0, 0.5])
    want, c, ys = plain([0, 0, 1], x)
    for run in (loop, lambda r, x: calque.jit(loop)(r, x)):
        r = ref.new_ref(jnp.array([0.0, 0.0, 1.0]))
        got = run(r, x)
        assert r[...].tolist() == want and float(got[0]) == c and got[1].tolist() == ys

    def total(x: Any) -> Any:
        r = ref.new_ref(jnp.array([0.0, 0.0, 1.0]))
        loop(r, x)
        return r[...].sum()

    slope = [
        (sum(plain([0, 0, 1], x + 1e-3 * e)[0]) - sum(plain([0, 0, 1], x - 1e-3 * e)[0])) / 2e-3
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(calque.grad(total)(x), slope, rtol=1e-3)
    np.testing.assert_allclose(
        calque.jit(calque.vmap(total))(jnp.stack([x, x]))[1], sum(want), rtol=1e-6
    )


def test_arguments_of_jit() -> None:
    traces = 0

    @calque.jit
    def step(r: Any, by: Any) -> Any:
        nonlocal traces
        traces += 1
        r["a"][...] = r["a"][...] + by
        return r["a"][...].sum()

    r = {"a": ref.new_ref(jnp.zeros(2)), "b": ref.new_ref(jnp.ones(1))}
    assert [float(step(r, 1.0)) for _ in range(3)] == [2, 4, 6] and traces == 1
    assert r["a"][...].tolist() == [3, 3] and r["b"][...].tolist() == [1]
    power = calque.jit(lambda r, n: ref.set(r, ..., r[...] ** n), static_argnums=1)
    power(r["a"], 2)
    assert r["a"][...].tolist() == [9, 9]
    outer = calque.jit(lambda r: step(r, 1.0))
    assert float(outer(r)) == 20 and r["a"][...].tolist() == [10, 10]
    with pytest.raises(ValueError, match="same Ref twice"):
        calque.jit(lambda a, b: a[...])(r["a"], r["a"])
    with pytest.raises((TypeError, ValueError), match=r"returned a (mutable|value)"):
        calque.jit(lambda r: r)(r["a"])


def test_jitted_functions_close_over_them() -> None:
    r = ref.new_ref(jnp.zeros(3))

    @functools.partial(calque.jit, static_argnames="by")
    def step(x: Any, by: int = 1) -> Any:
        r[0] += x * by
        return r[...].sum()

    assert [float(step(1.0)), float(step(1.0)), float(step(2.0, by=3))] == [1, 2, 8] and r[
        ...
    ].tolist() == [8, 0, 0]

    @calque.jit
    def outer(x: Any) -> Any:
        lax.fori_loop(0, 2, lambda i, c: (step(x), c)[1], 0)
        return r[0] * 2

    assert float(outer(1.0)) == 20 and float(r[0]) == 10
    local = calque.jit(lambda x: calque.grad(lambda y: cumulated(y)[2])(x) + r[0])
    assert local(jnp.array([2.0, 3.0, 4.0])).tolist() == [22, 22, 20]
    r[0] = 0.0
    assert local(jnp.array([2.0, 3.0, 4.0])).tolist() == [12, 12, 10]
    plain = calque.jit(lambda x: x + 1)
    assert plain(1) == 2 and plain(2) == 3


def test_what_stays_outside() -> None:
    r = ref.new_ref(jnp.zeros(3))
    rule = calque.custom_vjp(lambda x: x)
    rule.defvjp(lambda x: (x, None), lambda _, ct: (ct * r[0],))
    with pytest.raises(ValueError, match="closes over a mutable array"):
        calque.grad(calque.jit(rule))(1.0)
    with pytest.raises(ValueError, match="differentiated or batched"):
        calque.grad(lambda x: (ref.set(r, 0, x), x)[1])(1.0)
    with pytest.raises(ValueError, match="every lane would write"):
        calque.vmap(lambda x: ref.set(r, 0, x))(jnp.arange(2.0))
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        calque.grad(lambda r: r[0])(r)
    assert float(calque.grad(lambda x: x * r[0] + x)(1.0)) == 1  # reading is no trouble
    with pytest.raises(ZeroDivisionError):
        lax.fori_loop(0, 2, lambda i, c: c + r[0] + 1 // 0, 0.0)
    assert r[...].tolist() == [0, 0, 0]


@pytest.mark.peer
def test_values_of_jax() -> None:
    def results(root: Any) -> Any:
        numpy, refs, loops = root.numpy, root.ref, root.lax

        def run(x: Any) -> Any:
            r = refs.new_ref(numpy.zeros(3))

            def body(c: Any, i: Any) -> Any:
                refs.addupdate(r, i, x[i] * c)
                return refs.swap(r, 0, x[i]), r[i]

            out = loops.scan(body, x[0], numpy.arange(3))
            return out, refs.freeze(r)

        x = np.array([1.5, -2.0, 3.0], np.float32)
        (c, ys), last = root.jit(run)(x)
        return [c, ys, last, root.grad(lambda x: run(x)[1].sum())(x)]

    pytest.importorskip("jax.ref")

    compare(results(calque), results(jax()), 1e-6)


def test_the_type_of_a_reference() -> None:
    r = ref.new_ref(jnp.zeros(3))
    assert calque.typeof(r) == ref.AbstractRef(calque.typeof(jnp.zeros(3)))
    assert calque.jit(lambda r: (calque.typeof(r).shape, r[...])[1])(r).shape == (3,)
    with pytest.raises(TypeError, match="Ref"):
        lax.sin(r)
