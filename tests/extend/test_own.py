"""Primitives of a library's own, defined as libraries for JAX define them, under every
transformation."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.extend import core
from calque.extend.core import Primitive
from calque.interpreters import ad, batching, mlir, xla

X = np.array([0.5, -1.0, 2.0], np.float32)
_numbers = itertools.count()


def _name(base: str) -> str:
    return f"{base}_{next(_numbers)}"


def _multiply_add() -> Any:
    """x * y + z, as in JAX's tutorial: its values by NumPy, so that compiled code calls back."""
    p = Primitive(_name("multiply_add"))
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))

    @p.def_abstract_eval
    def abstract(x: Any, y: Any, z: Any) -> Any:
        assert x.shape == y.shape == z.shape
        return core_aval(x.shape, x.dtype)

    def jvp(primals: Any, tangents: Any) -> Any:
        x, y, z = primals
        tx, ty, tz = (ad.instantiate_zeros(t) for t in tangents)
        return p.bind(x, y, z), p.bind(tx, y, p.bind(x, ty, tz))

    def transpose(ct: Any, x: Any, y: Any, z: Any) -> Any:
        if not ad.is_undefined_primal(x):
            return (
                None,
                ct * x if ad.is_undefined_primal(y) else None,
                ct if ad.is_undefined_primal(z) else None,
            )
        return ct * y, None, ct if ad.is_undefined_primal(z) else None

    def batch(args: Any, dims: Any) -> Any:
        assert all(d == 0 for d in dims)
        return p.bind(*args), 0

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    return p


def core_aval(shape: Any, dtype: Any) -> Any:
    return calque.core.ShapedArray(shape, dtype)


def test_a_primitive_with_host_values() -> None:
    p = _multiply_add()

    def f(x, y):
        return p.bind(x, y, jnp.ones(3))

    y = jnp.array([1.0, 2.0, 3.0])
    want = X * np.asarray(y) + 1
    np.testing.assert_allclose(f(X, y), want)
    np.testing.assert_allclose(calque.jit(f)(X, y), want)
    assert str(p) in str(calque.make_jaxpr(f)(X, y))
    out, tangent = calque.jvp(f, (jnp.asarray(X), y), (jnp.ones(3), jnp.zeros(3)))
    np.testing.assert_allclose(tangent, y)
    for g in (
        calque.grad(lambda x, y: f(x, y).sum(), (0, 1)),
        calque.jit(calque.grad(lambda x, y: f(x, y).sum(), (0, 1))),
    ):
        by_x, by_y = g(jnp.asarray(X), y)
        np.testing.assert_allclose(by_x, y)
        np.testing.assert_allclose(by_y, X)
    rows = jnp.stack([y, 2 * y])
    batched = calque.vmap(lambda a, b: p.bind(a, b, a))(rows, rows)
    np.testing.assert_allclose(batched, rows * rows + rows)
    np.testing.assert_allclose(
        calque.jit(calque.vmap(lambda a, b: p.bind(a, b, a)))(rows, rows), rows * rows + rows
    )
    looped = lax.fori_loop(0, 3, lambda i, c: p.bind(c, y, c), jnp.asarray(X))
    np.testing.assert_allclose(looped, X * (np.asarray(y) + 1) ** 3, rtol=1e-5)


def test_effects_keep_equations() -> None:
    seen: list[int] = []
    p = Primitive(_name("noted"))

    class Noted(core.Effect):
        pass

    def impl(x: Any) -> Any:
        seen.append(1)
        return x

    p.def_impl(impl)
    p.def_effectful_abstract_eval(lambda x: (x, {Noted()}))

    @calque.jit
    def f(x: Any) -> Any:
        p.bind(x)
        return x + 1

    f(X)
    f(X)
    calque.effects_barrier() if hasattr(calque, "effects_barrier") else None
    assert len(seen) == 2


def test_tables_show_the_rules_of_all_primitives() -> None:
    assert lax.sin_p in ad.primitive_jvps and lax.sin_p in batching.primitive_batchers
    assert lax.sin_p not in ad.primitive_transposes and lax.neg_p in ad.primitive_transposes
    assert isinstance(lax.sin_p, Primitive)
    p = Primitive("sin")  # a name that is taken
    p.def_impl(lambda x: x + 1)
    p.def_abstract_eval(lambda x: x)
    np.testing.assert_allclose(calque.jit(p.bind)(X), X + 1)
    assert p not in ad.primitive_jvps
    ad.defjvp(p, lambda t, x: t)
    assert p in ad.primitive_jvps and len(ad.primitive_jvps) == len(list(ad.primitive_jvps)) > 100
    del ad.primitive_jvps[p]
    with pytest.raises(KeyError):
        ad.primitive_jvps[p]


def test_missing_rules_are_named() -> None:
    p = Primitive(_name("bare"))
    name = str(p)
    for call, text in (
        (lambda: p.bind(1.0), f"Evaluation rule for '{name}'"),
        (lambda: calque.make_jaxpr(p.bind)(1.0), f"Abstract evaluation for '{name}'"),
        (lambda: calque.jvp(p.bind, (1.0,), (1.0,)), f"Differentiation rule for '{name}'"),
        (lambda: calque.vmap(p.bind)(X), f"Batching rule for '{name}'"),
        (lambda: ad.get_primitive_transpose(p), "Transpose rule"),
        (lambda: mlir.ir_constant(1), "lower_fun"),
        (lambda: mlir.LoweringResult(), "LoweringResult"),
        (lambda: mlir.lower_fun(jnp.sin)(None), "register_lowering"),
        (lambda: ad.jvp(None, (), ()), "calque.jvp"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            call()
    with pytest.raises(TypeError, match="primitive"):
        ad.primitive_jvps["sin"] = lambda *_: None
    with pytest.raises(TypeError, match="callable"):
        mlir.register_lowering(p, 3)
    p.def_abstract_eval(lambda x: 3)
    with pytest.raises(ValueError, match="ShapedArray"):
        calque.make_jaxpr(p.bind)(1.0)


def test_rules_for_mlir_are_kept_for_xla() -> None:
    p = Primitive(_name("of_mlir"))
    mlir.register_lowering(p, lambda ctx, x: [x])
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x + 1)
    assert float(calque.jit(p.bind)(1.0)) == 2


def test_rules_get_arrays_and_tuples() -> None:
    seen = []
    p = core.Primitive("scaled_by")
    p.def_impl(lambda x, y: x * y)
    p.def_abstract_eval(lambda x, y: x)

    def jvp(primals, tangents):
        seen.append((type(primals), type(tangents), *map(type, primals)))
        return p.bind(*primals), p.bind(tangents[0], primals[1])

    def transpose(ct, x, y):
        seen.append((type(ct), type(y)))
        assert ad.is_undefined_primal(x) and calque.tree.leaves(x) == []
        return p.bind(ct, y), None

    def batch(args, dims):
        seen.append((type(args), type(dims)))
        return p.bind(*args), dims[0]

    ad.primitive_jvps[p], ad.primitive_transposes[p] = jvp, transpose
    batching.primitive_batchers[p] = batch
    assert float(calque.grad(lambda x: p.bind(x, 2.0))(3.0)) == 2.0
    assert calque.vmap(lambda x: p.bind(x, 2.0))(jnp.arange(2.0)).tolist() == [0.0, 2.0]
    assert seen[0][:2] == (tuple, tuple) and seen[-1] == (tuple, tuple)
    assert all(isinstance(k, type) and k not in (int, float, np.ndarray) for s in seen for k in s)
    assert p.get_bind_params({"a": 1}) == {"a": 1}


def test_the_call_that_libraries_bind() -> None:
    """`call_p` runs a program, in every transformation, as `closed_call_p` does."""
    program = calque.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    for p in (core.primitives.call_p, core.primitives.closed_call_p):

        def f(x, p=p):
            return p.bind(x, jaxpr=program)[0]

        assert float(f(1.0)) == float(calque.jit(f)(1.0)) == float(2 * jnp.sin(1.0))
        assert float(calque.grad(f)(0.0)) == 2.0
        assert calque.vmap(f)(jnp.zeros(3)).tolist() == [0.0] * 3


def test_what_is_missing_is_named() -> None:
    p = Primitive(_name("half_done"))
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(
        NotImplementedError, match=r"Lowering rule for primitive 'half_done.* not f"
    ):
        calque.jit(p.bind)(1.0)
    ad.defjvp(p, lambda t, x: p.bind(t))
    p.def_impl(lambda x: x)
    with pytest.raises(NotImplementedError, match=r"Transpose rule \(for reverse-mode diff"):
        calque.grad(p.bind)(1.0)
    p.def_impl(functools.partial(xla.apply_primitive, p))
    with pytest.raises(NotImplementedError, match=r"Lowering rule .* not found for platform cpu"):
        p.bind(1.0)  # which would ask itself for ever
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 3 * x, multiple_results=False))
    assert p.bind(1.0) == 3.0


@pytest.mark.parametrize("several", [False, True])
def test_types_of_results_are_one_or_a_list(several: bool) -> None:
    p = Primitive(_name("miscounted"))
    p.multiple_results = several
    p.def_abstract_eval((lambda x: x) if several else lambda x: [x])
    with pytest.raises(ValueError, match="method should return a tuple or"):
        calque.jit(p.bind)(1.0)


def test_tokens() -> None:
    token = lax.create_token()
    assert isinstance(token, core.Token) and not isinstance(jnp.zeros(0, bool), int)
    _, out = calque.jit(lambda x: (x, token))(1.0)
    assert isinstance(out, core.Token)
    assert not isinstance(jnp.ones(3), core.Token)


def test_numbers_tell_primitives_of_one_name_apart() -> None:
    first, second, third = (Primitive("twice_named_by_a_test") for _ in range(3))
    assert [str(p) for p in (first, second, third)] == [
        "twice_named_by_a_test", "twice_named_by_a_test_1", "twice_named_by_a_test_2",
    ]  # fmt: skip


def test_bind_may_be_a_librarys_own() -> None:
    p = Primitive(_name("bound"))
    p.def_custom_bind(lambda *args: args)
    assert p.bind(1, 2) == (1, 2) and calque.jit(lambda x: p.bind(x, 1)[0])(3) == 3


def test_types_are_those_of_enabled_dtypes() -> None:
    p = Primitive(_name("wide"))
    p.def_impl(lambda x: np.asarray(x, np.float64))
    p.def_abstract_eval(lambda x: calque.ShapeDtypeStruct(x.shape, np.float64))
    assert calque.jit(p.bind)(1.0).dtype == np.float32
    with calque.config.override("calque_enable_x64", True):
        assert calque.jit(p.bind)(1.0).dtype == np.float64


def test_tables_of_rules() -> None:
    p = Primitive(_name("tabled"))
    rule = lambda args, dims: (args[0], dims[0])  # noqa: E731
    table = batching.primitive_batchers
    assert p not in table and table.get(p) is None
    table[p] = rule
    assert p in table and p in list(table) and table.pop(p)([1], [0]) == (1, 0)
    assert p not in table
    with pytest.raises(KeyError):
        del table[p]
