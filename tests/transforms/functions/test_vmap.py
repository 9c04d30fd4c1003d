import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, reference_backend, values  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
A = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_in_axes_and_out_axes():
    close(vmap(lambda x: x * 2, in_axes=1)(A), (A * 2).T)
    close(vmap(lambda x: x * 2, in_axes=-1, out_axes=-1)(A), A * 2)
    close(vmap(lambda x, y: x + y, in_axes=(0, None))(A, A[0]), A + A[0])
    close(vmap(lambda p, x: p["w"] * x, in_axes=({"w": None}, 0))({"w": 2.0}, A), A * 2)
    close(vmap(lambda x: (x, x.sum()), out_axes=(1, 0))(A), (A.T, A.sum(1)))
    close(
        vmap(lambda x, *, k: x * k)(A, k=np.arange(3, dtype=np.float32)),
        A * np.arange(3)[:, None].astype("f"),
    )
    close(vmap(lambda x: 3.0, axis_size=2, in_axes=None)(1.0), np.full(2, 3.0, np.float32))
    assert float(vmap(lambda x: 3.0, out_axes=None)(A)) == 3.0


def test_nested_with_grad_and_jit():
    def f(w, x):
        return (w @ x) ** 2

    w = np.float32([1, 2, 3, 4])
    want = np.stack([2 * (w @ x) * x for x in A])
    close(jit(vmap(grad(f), in_axes=(None, 0)))(w, A), want, 1e-6)
    close(
        vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(A[:, 0], A[0]), np.outer(A[:, 0], A[0])
    )


def test_values_that_are_not_mapped_are_not_repeated():
    seen = []
    vmap(lambda x, y: (seen.append(type(jnp.sin(y)).__name__), x)[1], in_axes=(0, None))(A, 1.0)
    assert "Tracer" not in seen[0]


def f(x, y=None):
    return x


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: vmap(f, in_axes="a"), TypeError, "in_axes must be an int, None, or a tuple"),
        (lambda: vmap(f, in_axes=(0.5,)), TypeError, "in_axes must be an int"),
        (lambda: vmap(f, in_axes=(0, 0))(A), ValueError, r"len\(in_axes\)=2, len\(args\)=1"),
        (lambda: vmap(f, in_axes=({"a": 0},))((A,)), ValueError, "tree prefix"),
        (
            lambda: vmap(f)(A, A.T),
            ValueError,
            (
                r"(?s)one axis had size 3: axis 0 of argument x of type float32\[3,4\];.*"
                r"one axis had size 4: axis 0 of argument y of type float32\[4,3\]"
            ),
        ),
        (
            lambda: vmap(f)({"w": 1.0}),
            ValueError,
            r"map its argument along axis 0.*at least 1.*argument x\['w'\] of f",
        ),
        (lambda: vmap(f, in_axes=None)(A), ValueError, "at least one non-None"),
        (
            lambda: vmap(f, axis_size=5)(A),
            ValueError,
            r"`axis_size` argument was 5;\n  \* one axis had size 3",
        ),
        (lambda: vmap(f, out_axes=None)(A), ValueError, "out_axes is None"),
        (lambda: vmap(f, out_axes=7)(A), ValueError, "out of bounds"),
        (lambda: vmap(f)("text"), TypeError, "argument x of f: the value 'text' of type"),
        (lambda: vmap(3), TypeError, "Expected a callable"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match="(?s)" + text):
        call()
    assert values(1) == 1


# ---------------------------------------------------------------- summed results, placed values


def test_results_without_an_axis_are_summed_if_asked():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    f = calque.vmap(lambda r: (r * 2, r.sum()), out_axes=(None, 0), sum_match=True)
    for g in (f, calque.jit(f)):
        total, each = g(x)
        np.testing.assert_allclose(total, 2 * x.sum(0))
        np.testing.assert_allclose(each, x.sum(1))
    assert (
        calque.vmap(lambda r: 3.0, out_axes=None, sum_match=True)(x) == 3.0
    )  # not mapped: as it is
    with pytest.raises(ValueError, match="out_axes is None"):
        calque.vmap(lambda r: r, out_axes=None)(x)


@pytest.mark.parametrize("names", ["b", ("b",), ("b", "c")])
def test_placed_values_are_split_over_the_mesh_axes_given(names):
    kinds = (calque.sharding.AxisType.Auto,) * 3
    mesh = calque.make_mesh((1, 1, 1), ("b", "c", "x"), axis_types=kinds)
    P = calque.sharding.PartitionSpec

    def f(row):
        return calque.lax.with_sharding_constraint(
            row * 2, calque.sharding.NamedSharding(mesh, P("x"))
        )

    x = jnp.ones((4, 2))
    out = calque.jit(calque.vmap(f, spmd_axis_name=names))(x)
    assert out.sharding.spec == P("b" if names == ("b",) else names, "x")
    assert calque.vmap(f, in_axes=1, out_axes=1, spmd_axis_name=names)(x).sharding.spec[0] == "x"
    assert calque.vmap(f)(x).sharding.spec == P(None, "x")
    with pytest.raises(ValueError, match="no such axis"):
        calque.vmap(f, spmd_axis_name="no such axis")(x)


def test_functions_are_objects_of_any_kind():
    class Scaled:
        __name__ = 3  # a parameter, say
        __annotations__ = property(lambda self: 3)
        scale = 2.0

        def __call__(self, x):
            return self.scale * x

    assert calque.vmap(Scaled())(jnp.ones(2)).tolist() == [2.0, 2.0]


def test_results_that_are_no_values_are_told():
    with pytest.raises(TypeError, match=r"Output from batched function.* is not a valid JAX type"):
        vmap(lambda x: "text")(jnp.arange(3))


def test_the_result_that_differs_is_named():
    """By its place among the results, if they have axes of their own."""

    def f(x):
        return {"same": 1.0, "moving": (x, 2.0)}

    for out_axes, path in ((None, r""), ({"same": None, "moving": None}, r"\['moving'\]\[0\]")):
        message = rf"at vmap out_axes{path}, got axis spec None but output was batched on axis 0"
        with pytest.raises(ValueError, match=message):
            vmap(f, out_axes=out_axes)(A)
