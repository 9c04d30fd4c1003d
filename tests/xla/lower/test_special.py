"""Where special functions are programs, and where the host is called."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.special import ON_HOST_OF_CPU, PROGRAMS
from tests.xla.mlir import needs_jaxlib, printed

pytestmark = needs_jaxlib
FUNCTIONS = {"regularized_incomplete_beta": lax.betainc}
OPERANDS = {"bessel_i0e": 1, "regularized_incomplete_beta": 3}


def text(name: str, platform: str) -> str:
    function = FUNCTIONS.get(name) or getattr(lax, name)
    args = [typeof(jnp.full(3, 0.5))] * OPERANDS.get(name, 2)
    return lower_module(trace_to_jaxpr(function, args), Request(platform=platform)).text()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_accelerators_never_ask_the_host(name: str, platform: str) -> None:
    found = text(name, platform)
    printed(found)
    assert ("custom_call" in found) == (platform == "cpu" and name in ON_HOST_OF_CPU)


def test_gradients_and_batches() -> None:
    """Those that meet these functions on the way, as on calque's own engine."""
    a, x = jnp.asarray([0.5, 2.0, 30.0]), jnp.asarray([0.7, 1.0, 33.0])

    def f(a: jax.Array, x: jax.Array) -> jax.Array:
        drawn = lax.random_gamma_grad(a, x) * lax.igamma(a, x)
        return (drawn + lax.bessel_i0e(x) + lax.igammac(a, x)).sum()

    def gradients(backend: str) -> jax.Array:
        g = jax.vmap(jax.grad(f, 1), (None, 0))
        by_shape = jax.grad(lambda a: lax.igamma(a, x).sum())
        both = jax.jit(lambda a, x: (g(a, jnp.stack([x, x + 1])), by_shape(a)), backend=backend)
        return both(a, x)

    for got, wanted in zip(gradients("xla_cpu"), gradients("cpu"), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "cuda")])
@pytest.mark.parametrize("size", ["3", "n"])
def test_exported_programs_find_no_python(name: str, platforms: tuple[str, ...], size: str) -> None:
    function = FUNCTIONS.get(name) or getattr(lax, name)
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(size), np.float32)]
    args = [np.asarray(v, np.float32) for v in ([0.3, 0.5, 0.9],)]

    def f(x: jax.Array) -> jax.Array:
        return function(*[x] * OPERANDS.get(name, 2))  # type: ignore[no-any-return]

    exported = export.export(jax.jit(f), platforms=platforms)(*specs)
    np.testing.assert_allclose(exported.call(*args), f(*args), rtol=2e-5)


def test_what_is_drawn_from_a_gamma_distribution_is_exported_with_its_gradient() -> None:
    def f(a: jax.Array) -> jax.Array:
        return jax.random.gamma(jax.random.key(3), a).sum()

    a = jnp.asarray([0.5, 2.0])
    found = export.export(jax.jit(jax.grad(f)))(a).call(a)
    np.testing.assert_allclose(found, jax.grad(f)(a), rtol=1e-4)
