"""Tables of associated Legendre functions."""

import numpy as np
import pytest
import scipy.special

import calque
import calque.numpy as jnp
from calque.scipy import special
from tests.ops.helpers import x64
from tests.scipy.special.shared import close

ORDERS, DEGREES = np.arange(5)[:, None, None], np.arange(7)[None, :, None]


def values(z):
    return np.where(ORDERS <= DEGREES, scipy.special.lpmv(ORDERS, DEGREES, z), 0.0)


def slopes(z):
    """(1 - z^2) P' = (n + m) P[n - 1] - n z P[n]"""
    table = values(z)
    below = np.concatenate([np.zeros_like(table[:, :1]), table[:, :-1]], axis=1)
    return ((DEGREES + ORDERS) * below - DEGREES * z * table) / (1 - z**2)


def test_values_and_slopes() -> None:
    z = np.linspace(-0.95, 0.98, 23)
    with x64():
        table, derivatives = special.lpmn(4, 6, z)
        close(table, values(z), 1e-12)
        close(derivatives, slopes(z), 1e-10)
        close(special.lpmn_values(4, 6, z, False), values(z), 1e-12)
    short = calque.jit(lambda x: special.lpmn_values(4, 6, x, False))(jnp.asarray(z, "float32"))
    assert short.dtype == jnp.float32
    close(short, values(z), 2e-5)


def test_normalised_values_are_those_of_spherical_harmonics() -> None:
    angle = np.linspace(0.0, np.pi, 19)
    with x64():
        table = special.lpmn_values(4, 6, np.cos(angle), True)
    wanted = scipy.special.sph_harm_y(DEGREES, np.minimum(ORDERS, DEGREES), angle, 0.0).real
    close(table, np.where(ORDERS <= DEGREES, wanted, 0.0), 1e-12)


def test_slopes_at_the_ends() -> None:
    """The root that odd orders begin with has no slope there, and the others have one."""
    with x64():
        table, derivatives = special.lpmn(4, 6, np.array([-1.0, 1.0]))
    assert not np.isnan(derivatives).any() and not np.isnan(table).any()
    assert derivatives[1, 1:, 1].tolist() == [np.inf] * 6
    assert derivatives[1, 1:, 0].tolist() == [-np.inf, np.inf] * 3
    assert derivatives[2, 2].tolist() == [6.0, -6.0]  # of 3 (1 - z^2)
    assert derivatives[0, 3].tolist() == [6.0, 6.0]


def test_derivative_of_a_table() -> None:
    with x64():
        z = np.array([0.3, -0.6])
        found = calque.jacfwd(lambda x: special.lpmn_values(2, 3, x, False))(z)
        close(found[..., [0, 1], [0, 1]], slopes(z)[:3, :4], 1e-10)


@pytest.mark.parametrize("name", ["lpmn", "lpmn_values"])
def test_what_is_refused(name) -> None:
    def call(*args):
        return getattr(special, name)(*args, *([True] if name == "lpmn_values" else []))

    with pytest.raises(TypeError, match=f"{name}: z must be of float32 or float64, got dtype int"):
        call(1, 1, jnp.arange(3))
    with pytest.raises(ValueError, match=f"{name}: z must be a vector"):
        call(1, 1, jnp.ones((2, 2)))
    with pytest.raises(ValueError, match=f"{name}: the order and the degree begin at 0"):
        call(-1, 1, jnp.ones(2))
