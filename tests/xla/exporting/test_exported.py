"""Exported programs: written and read, called from both engines and from other programs, with their
gradients; and in JAX, where it is installed."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 2), np.float32) / 3


@jax.jit
def several(x: Any, rest: Any) -> Any:
    """A function of trees."""
    return {"a": jnp.sin(x) @ rest["w"], "b": (x.sum(), None)}


def round_trip(f: Any, *args: Any, order: int = 0) -> Any:
    return export.deserialize(export.export(f)(*args).serialize(vjp_order=order))


def test_a_program_comes_back_as_it_was() -> None:
    made = export.export(several)(X, {"w": W})
    found = export.deserialize(made.serialize())
    assert found.fun_name == "several" and found.platforms == ("cpu",) and found.nr_devices == 1
    assert (found.in_tree, found.out_tree) == (made.in_tree, made.out_tree)
    assert (found.in_avals, found.out_avals) == (made.in_avals, made.out_avals)
    assert found.mlir_module() == made.mlir_module() and "stablehlo.sine" in found.mlir_module()
    assert str(found) == "Exported(fun_name=several, ...)" and not found.has_vjp()
    expected = several(X, {"w": W})
    got = found.call(X, {"w": W})
    np.testing.assert_allclose(got["a"], expected["a"], rtol=1e-6)
    assert got["b"][1] is None and got["b"][0] == expected["b"][0]


@pytest.mark.parametrize("backend", [None, "xla_cpu"])
def test_calls_from_other_programs(backend: str | None) -> None:
    found = round_trip(several, X, {"w": W})

    @jax.jit
    def helper(v: Any) -> Any:
        return found.call(v, {"w": W})["a"]

    def twice(x: Any) -> Any:
        return helper(x * 2) + found.call(x, {"w": W})["a"]

    got = jax.jit(twice, backend=backend)(X)
    np.testing.assert_allclose(got, np.sin(2 * X) @ W + np.sin(X) @ W, rtol=1e-5, atol=1e-6)


def test_gradients_go_with_it() -> None:
    def total(f: Any) -> Any:
        return lambda x: f(x, {"w": W})["a"].sum()

    found = round_trip(several, X, {"w": W}, order=2)
    np.testing.assert_allclose(
        jax.grad(total(found.call))(X), jax.grad(total(several))(X), rtol=1e-5
    )

    def second(f: Any) -> Any:
        return jax.grad(lambda x: (jax.grad(total(f))(x) ** 2).sum())(X)

    np.testing.assert_allclose(second(found.call), second(several), rtol=1e-4, atol=1e-6)
    assert found.has_vjp() and found.vjp().has_vjp() and not found.vjp().vjp().has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(total(round_trip(several, X, {"w": W}).call))(X)


def test_integers_keys_and_unused_arguments() -> None:
    @jax.jit
    def f(key: Any, n: Any, unused: Any, x: Any) -> Any:
        return jax.random.split(key)[0], n * 2, jnp.linalg.cholesky(x @ x.T + jnp.eye(2)), x > 1

    args = (jax.random.key(3), 5, np.zeros(7), X)
    found = round_trip(f, *args, order=1)
    assert len(found.in_avals) == 4 and found.module_kept_var_idx == (0, 1, 3)
    for run in (found.call, jax.jit(found.call), jax.jit(found.call, backend="xla_cpu")):
        key, n, factor, mask = run(*args)
        expected = f(*args)
        np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(expected[0]))
        assert n == 10
        np.testing.assert_allclose(factor, expected[2], rtol=1e-5)
        np.testing.assert_array_equal(mask, X > 1)
    g = jax.grad(lambda x: found.call(*args[:3], x)[2].sum())(X)
    np.testing.assert_allclose(g, jax.grad(lambda x: f(*args[:3], x)[2].sum())(X), rtol=1e-4)


def test_what_cannot_be_exported() -> None:
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(jnp.sin.__wrapped__)
    with pytest.raises(ValueError, match="it calls Python on the host"):
        export.export(jax.jit(lambda v: jax.pure_callback(np.sin, v, v)))(X)
    for platforms in ([], ["cpu", "tpu"], ["abacus"]):
        with pytest.raises(ValueError, match="one platform of cpu, cuda, rocm, tpu"):
            export.export(several, platforms=platforms)


def test_programs_for_other_platforms_are_written_and_not_run() -> None:
    made = export.export(jax.jit(jnp.sin), platforms=["tpu"])(X)
    found = export.deserialize(made.serialize())
    assert found.platforms == ("tpu",)
    with pytest.raises(ValueError, match=r"exported for platforms \('tpu',\)"):
        found.call(X)
    allowed = export.DisabledSafetyCheck.platform()
    free = export.export(jax.jit(jnp.sin), platforms=["tpu"], disabled_checks=[allowed])(X)
    loaded = export.deserialize(free.serialize())
    assert loaded.disabled_safety_checks == (allowed,)
    np.testing.assert_allclose(loaded.call(X), np.sin(X), rtol=1e-5, atol=1e-6)


def test_calls_that_do_not_fit() -> None:
    found = round_trip(several, X, {"w": W})
    with pytest.raises(ValueError, match="same pytree structure"):
        found.call(X)
    with pytest.raises(ValueError, match="Shape mismatch for argument 0 of several"):
        found.call(X.T, {"w": W})
    with pytest.raises(ValueError, match="Dtype mismatch for argument 1"):
        found.call(X, {"w": W.astype(np.int32)})
    with pytest.raises(NotImplementedError, match="export the batched function"):
        jax.vmap(lambda x: found.call(x, {"w": W}))(X[None])
    for wrong in (b"", b"no program at all, but some bytes that are long enough"):
        with pytest.raises(ValueError, match="these bytes"):
            export.deserialize(wrong)


THERE = """
import sys, numpy as np, jax, jax.numpy as jnp
from jax import export
folder = sys.argv[1]
X, W = np.load(folder + "/x.npy"), np.load(folder + "/w.npy")
found = export.deserialize(bytearray(open(folder + "/ours", "rb").read()))
np.save(folder + "/value", found.call(X, {"w": W})["a"])
np.save(folder + "/grad", jax.grad(lambda x: found.call(x, {"w": W})["a"].sum())(X))
f = jax.jit(lambda x, k: {"a": jnp.tanh(x).sum(1), "k": jax.random.split(k)[1]})
blob = export.export(f)(X, jax.random.key(3)).serialize(vjp_order=1)
open(folder + "/theirs", "wb").write(blob)
"""


@pytest.mark.peer
def test_bytes_go_to_jax_and_come_from_it(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", W)
    made = export.export(several)(X, {"w": W})
    (tmp_path / "ours").write_bytes(made.serialize(vjp_order=1))
    done = subprocess.run(
        [sys.executable, "-c", THERE, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "value.npy"), np.sin(X) @ W, rtol=1e-5, atol=1e-6)
    expected = jax.grad(lambda x: several(x, {"w": W})["a"].sum())(X)
    np.testing.assert_allclose(np.load(tmp_path / "grad.npy"), expected, rtol=1e-5, atol=1e-6)
    found = export.deserialize((tmp_path / "theirs").read_bytes())
    got = found.call(X, jax.random.key(3))
    np.testing.assert_allclose(got["a"], np.tanh(X).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(
        jax.random.key_data(got["k"]), jax.random.key_data(jax.random.split(jax.random.key(3))[1])
    )
    g = jax.grad(lambda x: found.call(x, jax.random.key(3))["a"].sum())(X)
    np.testing.assert_allclose(g, 1 - np.tanh(X) ** 2, rtol=1e-3, atol=1e-6)
