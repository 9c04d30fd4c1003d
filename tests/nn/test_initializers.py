"""Initial values of parameters, the same as JAX's for the same key."""

from typing import Any

import pytest

import calque
from calque.nn import initializers as init
from tests.peers import compare, jax

FAMILIES = [
    n
    for n in init.__all__
    if n not in ("Initializer", "zeros", "ones", "constant", "variance_scaling")
    and n[:2] not in ("xa", "ka")
]

REAL = ("uniform", "truncated_normal")


@pytest.mark.peer
@pytest.mark.parametrize("name", FAMILIES)
def test_values(name: str) -> None:
    for dtype in (None, "complex64"):
        for shape in ((2, 3, 4, 5),):

            def draw(module, key, s=shape, d=dtype):
                return getattr(module, name)()(key, s, d)

            if name in REAL and dtype == "complex64":
                continue
            peer = draw(jax().nn.initializers, jax().random.key(1))
            compare(draw(init, calque.random.key(1)), peer, 1e-5)


@pytest.mark.peer
def test_options() -> None:
    cases: list[Any] = [
        lambda m: m.glorot_normal(in_axis=(0, 1), out_axis=2),
        lambda m: m.variance_scaling(1.0, "fan_in", "uniform", batch_axis=0),
        lambda m: m.variance_scaling(2.0, "fan_geo_avg", "normal"),
        lambda m: m.truncated_normal(0.3, lower=-1.0, upper=0.5),
        lambda m: m.constant(3),
        lambda m: m.zeros,
        lambda m: m.ones,
    ]
    for make in cases:
        compare(
            make(init)(calque.random.key(1), (3, 4, 5)),
            make(jax().nn.initializers)(jax().random.key(1), (3, 4, 5)),
        )


def test_bad_arguments() -> None:
    key = calque.random.key(0)
    with pytest.raises(ValueError, match="1-dimensional weights"):
        init.glorot_normal()(key, (3,))
    with pytest.raises(ValueError, match="invalid mode"):
        init.variance_scaling(1.0, "fan", "normal")(key, (3, 2))
    with pytest.raises(ValueError, match="invalid distribution"):
        init.variance_scaling(1.0, "fan_in", "even")(key, (3, 2))


def test_shardings_speak_of_all_dimensions():
    mesh = calque.make_mesh((calque.device_count(),), ("x",))
    with calque.set_mesh(mesh):
        for make in (init.constant(2.0), init.he_normal()):
            out = make(calque.random.key(0), (calque.device_count(), 2), out_sharding=calque.P("x"))
            assert out.sharding.spec == calque.P("x", None)


def test_axes_that_are_named_serve_arrays_of_any_rank() -> None:
    key = calque.random.key(0)
    for shape in ((), (3,), (4, 3)):
        scaled = init.variance_scaling(1.0, "fan_in", "normal", in_axis=(), out_axis=())
        assert scaled(key, shape).shape == shape
    vector = init.variance_scaling(1.0, "fan_in", "normal", in_axis=0, out_axis=())
    spread = vector(key, (1000,)).std()
    assert abs(float(spread) - 1000**-0.5) < 0.003
    with pytest.raises(ValueError, match="specify in_axis explicitly"):
        init.variance_scaling(1.0, "fan_in", "normal")(key, (3,))
