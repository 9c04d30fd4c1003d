import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad, jvp, linear_transpose, value_and_grad, vjp
from calque.transforms.functions.jacobian import jacfwd, jacrev
from tests.transforms.programs import close, reference_backend, values  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
F = np.float32


def test_weak_types():
    value, gradient = value_and_grad(lambda x: 2 * x)(5.0)
    assert float(value) == 10.0 and float(gradient) == 2.0
    assert value.aval.weak_type and gradient.aval.weak_type


def test_argnums():
    def f(x, y):
        return x * y**2

    assert float(grad(f)(2.0, 3.0)) == 9.0
    assert float(grad(f, argnums=1)(2.0, 3.0)) == 12.0 == float(grad(f, argnums=-1)(2.0, 3.0))
    both = grad(f, argnums=(0, 1))(2.0, 3.0)
    assert isinstance(both, tuple) and values(both) == (9.0, 12.0)
    close(grad(lambda x, *, k: x * k)(2.0, k=3.0), 3.0)


def test_trees_and_aux():
    p = {"w": np.ones(3, F), "b": [np.float32(2.0)]}
    (value, aux), g = value_and_grad(
        lambda p: ((p["w"] * p["b"][0]).sum(), {"seen": p["w"]}), has_aux=True
    )(p)
    close((value, aux, g), (F(6), {"seen": np.ones(3, F)}, {"w": np.full(3, 2, F), "b": [F(3)]}))
    g, aux = grad(lambda x: (x * x, "label"), has_aux=True)(3.0)
    assert float(g) == 6.0 and aux == "label"


def test_higher_orders():
    def f(x):
        return 2 * x**3

    assert [float(g(1.0)) for g in (f, grad(f), grad(grad(f)), grad(grad(grad(f))))] == [
        2.0,
        6.0,
        12.0,
        12.0,
    ]


def test_complex():
    z = np.complex64(1 + 2j)
    close(grad(lambda z: z * z, holomorphic=True)(z), 2 * z)
    close(grad(lambda z: (z * z.conj()).real)(z), 2 * z.conj())


def test_integers():
    g = grad(lambda n: n * 2.0, allow_int=True)(3)
    assert np.asarray(g).dtype.names == ("float0",)
    assert np.asarray(vjp(lambda n: n * 2.0, 3)[1](1.0)[0]).dtype.names == ("float0",)


def test_functions_keep_their_look():
    def loss(x):
        """What is lost."""

    g = grad(loss)
    assert g.__name__ == "loss" and "What is lost." in g.__doc__


def f(x, y=1.0):
    return x


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: grad(f)(np.ones(3, F)), r"Output of f had shape: \(3,\)"),
        (lambda: grad(lambda x: (x, x))(1.0), "Output of <lambda> was a container"),
        (lambda: grad(f)(3), "got int32 for the argument x"),
        (
            lambda: grad(lambda a, p: a, argnums=(0, 1))(1.0, {"w": [1.0, 2]}),
            r"got int32 for the argument p\['w'\]\[1\]",
        ),
        (lambda: grad(f)({"w": "text"}), r"x\['w'\]|args\[0\]"),
        (lambda: grad(f, argnums=2)(1.0), "argnums=2 requires at least 3 positional arguments"),
        (lambda: grad(f, argnums="x")(1.0), "argnums must be an int"),
        (lambda: grad(lambda x: x * 1j)(1.0), "real-valued outputs .* got complex64"),
        (
            lambda: grad(lambda x: x, holomorphic=True)(1.0),
            "requires inputs with complex dtype, but got float32",
        ),
        (lambda: grad(lambda x: jnp.int32(3))(1.0), "got int32"),
        (lambda: grad(lambda x: "text")(1.0), "not a valid JAX type"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), "must return a pair"),
        (lambda: grad(3), "Expected a callable"),
    ],
)
def test_bad_arguments(call, text):
    with pytest.raises(TypeError, match=r"(?s)" + text):
        call()


def test_gradients_are_arrays():
    import calque

    assert isinstance(grad(lambda x: x)(2.0), calque.Array)
    assert isinstance(vjp(lambda x: x, 2.0)[1](1.0)[0], calque.Array)
    assert isinstance(linear_transpose(lambda x: x, 2.0)(1.0)[0], calque.Array)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda f, x: vjp(f, x)[1](x, x),
            TypeError,
            "vjp applied to f was called with 2 arguments, but it takes one",
        ),
        (lambda f, x: vjp(f, x)[1](), TypeError, "was called with 0 arguments"),
        (
            lambda f, x: linear_transpose(f, x)(x[:1]),
            TypeError,
            r"expected f32\[3\] but got f32\[1\], in the transpose of f",
        ),
        (
            lambda f, x: jvp(f, x, x),
            TypeError,
            "primal and tangent arguments to calque.jvp must be tuples or lists",
        ),
        (
            lambda f, x: jvp(f, (x,), (x, x)),
            TypeError,
            "arguments to calque.jvp must have the same tree structure",
        ),
        (
            lambda f, x: jacfwd(f)(3),
            TypeError,
            "jacfwd requires real-valued .* got int32 for the argument p of f",
        ),
        (
            lambda f, x: jacrev(f)({"w": x, "n": 3}),
            TypeError,
            r"got int32 for the argument p\['n'\] of f.* set allow_int",
        ),
    ],
)
def test_bad_input_names_the_function(call, error, text):
    def f(p):
        return p

    with pytest.raises(error, match=text):
        call(f, np.arange(3, dtype=np.float32))


def test_a_linearized_function_is_a_container_of_its_residuals():
    x = jnp.arange(3.0)
    _, f_jvp = calque.linearize(lambda x: jnp.sin(x) * x, x)
    leaves, tree = calque.tree_util.tree_flatten(f_jvp)
    assert leaves and all(leaf.shape == (3,) for leaf in leaves)
    again = calque.tree_util.tree_unflatten(tree, leaves)
    want = jnp.cos(x) * x + jnp.sin(x)
    assert jnp.allclose(again(jnp.ones(3)), want) and f_jvp.args == tuple(leaves)
    assert jnp.allclose(calque.jit(lambda f, t: f(t))(f_jvp, jnp.ones(3)), want)
    assert jnp.allclose(f_jvp.func(f_jvp.args, jnp.ones(3)), want)
    assert "mul" in str(f_jvp.func.args[0]) and f_jvp.__name__.startswith("derivative of")
    both = calque.jit(lambda x: calque.linearize(jnp.sin, x))(x)
    assert jnp.allclose(both[1](jnp.ones(3)), jnp.cos(x))


def test_transposes_of_integers():
    (out,) = linear_transpose(lambda x: 2 * x, 1)(3)
    assert out == 6 and out.dtype == np.int32
    with pytest.raises(TypeError, match="linear_transpose only supports"):
        linear_transpose(lambda x: 2.0 * x, 1)


def test_transposes_leave_and_enter_programs():
    made = calque.jit(lambda y: linear_transpose(lambda x: x * y, 1.0))(4.0)
    assert calque.jit(lambda f, ct: f(ct))(made, 2.0) == (8.0,)


def test_words_of_mismatched_tangents():
    with pytest.raises(TypeError, match=r"arguments to calque.jvp do not match\."):
        jvp(lambda x: -x, (np.float16(2),), (np.float32(4),))


@pytest.mark.parametrize(
    "f",
    [jnp.abs, jnp.sign, lambda x: jnp.where(x > 0, x, -x), lambda x: 3.0, jnp.floor],
    ids=["abs", "sign", "where", "constant", "floor"],
)
def test_gradients_are_as_weakly_typed_as_their_arguments(f):
    assert calque.grad(f)(1.0).weak_type
    assert not calque.grad(f)(jnp.float32(1)).weak_type
    assert calque.make_jaxpr(calque.grad(f))(1.0).out_avals[0].weak_type
