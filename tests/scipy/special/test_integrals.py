"""Special functions that are integrals and series: values against SciPy in both precisions, types
against JAX, derivatives, edges."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import calque
import calque.numpy as jnp
from calque.scipy import special
from calque.test_util import check_grads
from tests.numpy.expressions import lines
from tests.ops.helpers import x64
from tests.scipy.expressions import check_jax
from tests.scipy.special.shared import close

_rng = np.random.default_rng(0)
POSITIVE = np.concatenate(
    [10.0 ** np.linspace(-6, 3, 60), np.linspace(0.1, 45, 120), [0, 1, 2, 8, 1.5, 0.5, 40]]
)
POINTS = np.concatenate([POSITIVE, -POSITIVE])
_a, _b, _c = (_rng.uniform(low, 5, 60) for low in (-3, 0.3, 0.2))
_z = 10.0 ** _rng.uniform(-4, 3, 120) * np.exp(1j * _rng.uniform(-0.2, np.pi + 0.2, 120))
_n = _rng.integers(0, 12, 60)

# name, arguments, tolerances in float32 and float64 (relative, or absolute where a value is small)
CASES: list[tuple[str, tuple[Any, ...], float, float]] = [
    ("dawsn", (POINTS,), 1e-6, 1e-14),
    ("erfcx", (POINTS[np.abs(POINTS) < 8],), 2e-5, 1e-13),
    ("exp1", (POSITIVE,), 3e-6, 1e-13),
    ("expi", (POINTS[np.abs(POINTS) < 80],), 2e-5, 1e-12),
    ("sici", (POINTS,), 2e-5, 1e-13),
    ("fresnel", (POINTS,), 3e-5, 1e-13),
    ("spence", (POSITIVE,), 2e-6, 1e-13),
    ("wofz", (_z,), 2e-5, 1e-12),
    ("expn", (np.array([[0], [1], [2], [7], [30], [6000]]), POSITIVE[::4]), 2e-6, 1e-13),
    ("owens_t", (_rng.normal(size=80) * 3, _rng.normal(size=80) * 3), 2e-6, 1e-13),
    ("hyp1f1", (np.abs(_a), _b, _rng.normal(size=60) * 20), 2e-3, 1e-9),
    ("hyp1f1", (-2.0, _b, _rng.normal(size=60) * 20), 1e-4, 1e-12),
    ("hyp2f1", (_a / 2, _b / 2, _c, 1 - 10.0 ** _rng.uniform(-3, 2, 60)), 1e-3, 1e-11),
    ("hyp2f1", (1.0, 2.0, 4.0, np.linspace(-9, 1, 40)), 1e-5, 1e-12),
    ("hyp2f1", (-3.0, 2.5, 1.5, np.linspace(-9, 9, 40)), 1e-5, 1e-12),
    ("sph_harm_y", (_n, _rng.integers(-12, 13,
    60) % (_n + 1) * np.sign(_rng.normal(size=60)).astype(int), *_rng.uniform(0, 3, (2, 60))),
    2e-5, 1e-12),
]  # fmt: skip


@pytest.mark.parametrize(
    "name, args, single, double", CASES, ids=[f"{c[0]}{i}" for i, c in enumerate(CASES)]
)
def test_values(name: str, args: tuple[Any, ...], single: float, double: float) -> None:
    theirs, ours = getattr(scipy.special, name), getattr(special, name)

    def to_single(v):
        return (
            np.asarray(v)
            if np.asarray(v).dtype.kind == "i"
            else np.asarray(v).astype(np.asarray(v).dtype.str[1] + str(np.asarray(v).itemsize // 2))
        )

    small = [to_single(v) for v in args]
    with np.errstate(all="ignore"):
        wide = [
            v if v.dtype.kind == "i" else v.astype(np.result_type(v.dtype, np.float64))
            for v in small
        ]
        close(ours(*small), theirs(*wide), single)
        with x64():
            got = ours(*args)
            first = got[0] if isinstance(got, tuple) else got
            assert first.dtype.itemsize == (16 if first.dtype.kind == "c" else 8)
            close(got, theirs(*args), double)


def test_edges() -> None:
    with np.errstate(all="ignore"):
        edge = np.array([-np.inf, -0.0, 0.0, np.inf, np.nan])
        for name in ("dawsn", "erfcx", "expi", "sici", "fresnel"):
            close(
                getattr(special, name)(edge.astype("float32")),
                getattr(scipy.special, name)(edge),
                1e-6,
            )
        close(special.exp1(edge[1:].astype("float32")), scipy.special.exp1(edge[1:]), 1e-6)
        assert (
            np.isnan(special.exp1(-1.0))
            and np.isnan(special.spence(-1.0))
            and np.isnan(special.expn(2, -1.0))
        )
        close(special.expn(np.array([0, 1, 2, 5]), 0.0), np.array([np.inf, np.inf, 1, 0.25]), 1e-6)
        close(
            special.owens_t(1.0, np.array([np.inf, -np.inf, 0.0])),
            scipy.special.owens_t(1, [np.inf, -np.inf, 0]),
            1e-6,
        )
        for args in (
            (1, 2, 4, 1),
            (1, 2, 3, 1),
            (1, 2, 3, 1.5),
            (-2, 1, 1, 3),
            (1, 1, -2, 0.5),
            (-1, 1, -2, 0.5),
            (1, 1, 0, 0),
        ):
            close(special.hyp2f1(*map(float, args)), np.asarray(scipy.special.hyp2f1(*args)), 1e-5)
        for args in ((1, 0, 1), (-1, -2, 1), (2, 2, 1), (0, 3, 2)):
            close(special.hyp1f1(*map(float, args)), np.asarray(scipy.special.hyp1f1(*args)), 1e-5)
        z = np.array(
            [complex(np.inf, 1), complex(1, np.inf), complex(np.nan, 0), 1e20 + 1j], np.complex64
        )
        got = np.asarray(special.wofz(z))
        assert (
            got[:2].tolist() == [0, 0]
            and np.isnan(got[2])
            and abs(got[3]) == pytest.approx(1 / (np.sqrt(np.pi) * 1e20))
        )
    assert special.erfcx(1e30) > 0


DERIVATIVES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "dawsn": (special.dawsn, (POINTS[::23],)),
    "erfcx": (special.erfcx, (np.array([-1.5, 0, 0.3, 4, 20]),)),
    "exp1": (special.exp1, (np.array([0.3, 1.9, 2.1, 9]),)),
    "expi": (special.expi, (np.array([-3, -0.5, 0.4, 7]),)),
    "expn": (lambda x: special.expn(3, x), (np.array([0.3, 0.99, 1.01, 9]),)),
    "sici": (special.sici, (np.array([-3, 0.5, 7.9, 8.1]),)),
    "fresnel": (special.fresnel, (np.array([-3, 0, 0.5, 1.6]),)),
    "spence": (special.spence, (np.array([0.1, 0.6, 1, 1.4, 3]),)),
    "owens_t": (special.owens_t, (np.array([-1, 0.5, 2]), np.array([0.3, 2, -4]))),
    "wofz": (special.wofz, (np.array([1 + 1j, -2 + 0.1j, 0.5 - 0.5j]),)),
    "hyp1f1": (special.hyp1f1, (np.array([1.3, 0.4]), np.array([2.1, 0.7]), np.array([-3.0, 2.0]))),
    "hyp2f1": (
        special.hyp2f1,
        (np.array([0.4, 1.5]), np.array([1.2, 0.3]), np.array([2.1, 2.0]), np.array([-2.0, 0.8])),
    ),
    "bessel_jn": (lambda z: special.bessel_jn(z, v=2), (np.array([0, 0.5, -7]),)),
    "sph_harm_y": (
        lambda t, p: special.sph_harm_y(np.array([3, 2, 1]), np.array([-2, 0, 1]), t, p),
        (np.array([0.4, 1, 2]), np.array([0.1, 3, 5])),
    ),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    f, args = DERIVATIVES[name]
    with x64():
        check_grads(f, tuple(map(jnp.asarray, args)), order=1, atol=1e-5, rtol=1e-5)


DATA = {
    "F": np.array([0.5, 0.25], np.float32), "H": np.array([0.5, 2], np.float16), "I": np.array([1,
    2]), "C": np.array([0.5 + 1j], np.complex64),
}  # fmt: skip
_UNARY = "dawsn erfcx exp1 expi fresnel sici wofz".split()  # noqa: SIM905
TYPES = [f"m.{f}({x})" for f in _UNARY for x in ("F", "H", "I", "0.5", "[1.]")] + lines("""
m.dawsn(C)
m.erfcx(C)
m.exp1(C)
m.expi(C)
m.fresnel(C)
m.sici(C)
m.wofz(C)
m.spence(F)
m.spence(H)
m.spence(I)
m.spence(0.5)
m.expn(2,F)
m.expn(I,F[:,None])
m.expn(2,C)
m.expn(I,H)
m.bessel_jn(F,v=2)
m.bessel_jn(I,v=2)
m.bessel_jn(H,v=1)
m.bessel_jn(F,v=2.5)
m.bessel_jn(C,v=1)
m.hyp1f1(1.,F,2)
m.hyp1f1(H,H,H)
m.hyp1f1(C,C,C)
m.hyp2f1(1.,2.,F[:,None],F)
m.hyp2f1(H,H,H,H)
m.owens_t(F,H)
m.owens_t(H,H)
m.owens_t(1.,F)
m.sph_harm_y(I,I,F,F,n_max=3)
m.sph_harm_y(I,I,F[:1],F,n_max=3)
m.sph_harm_y(F,F,F,F,n_max=3)
m.sph_harm_y(I,I,F,F,diff_n=1,n_max=3)
""")


@pytest.mark.peer
@pytest.mark.parametrize("case", TYPES)
def test_types_and_refusals_of_jax(case: str) -> None:
    check_jax(case, "special", DATA)


def test_under_transformations() -> None:
    x = jnp.array([0.3, 2.5])
    for f in (special.exp1, special.dawsn, lambda v: special.hyp1f1(1.2, 2.1, v)):
        close(calque.jit(calque.vmap(f))(x), np.asarray(f(x)), 1e-6)
    with pytest.raises(calque.errors.ConcretizationTypeError):
        calque.jit(lambda n: special.sph_harm_y(n, n, x, x))(jnp.array([1, 2]))
    assert special.sph_harm_y(
        jnp.array([], int), jnp.array([], int), jnp.zeros(0), jnp.zeros(0)
    ).shape == (0,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_types_of_owens_t_follow_its_operands_alone(dtype: str) -> None:
    with x64():
        got = special.owens_t(np.ones(2, dtype), np.ones(2, dtype)).dtype
        assert got == (dtype if dtype == "float64" else np.float32)
