"""Library functions and operators on new shapes: served by one entry for all sizes, with the values
that Python gives."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.call import functions as callpath
from calque.native.eager import execution as eager
from calque.native.eager import families as eager_families
from calque.numpy.calls import any_size
from calque.numpy.calls.cached import Teacher, cached

for _name in jnp.__all__:  # one that is first asked for by a test would keep what is put there
    getattr(jnp, _name)

FUNCTIONS: dict[str, Any] = {
    "exp": jnp.exp,
    "sum": jnp.sum,
    "mean": jnp.mean,
    "std": jnp.std,
    "cumsum": jnp.cumsum,
    "sort": jnp.sort,
    "argmax": jnp.argmax,
    "concatenate": lambda x: jnp.concatenate([x, x]),
    "stack": lambda x: jnp.stack([x, x], axis=-1),
    "where": lambda x: jnp.where(x > 0.5, x, 0.0),
    "clip": lambda x: jnp.clip(x, 0.25, 0.5),
    "flip": jnp.flip,
    "zeros_like": jnp.zeros_like,
    "transpose": lambda x: x.T,
    "ravel": lambda x: x.ravel(),
    "reshape": lambda x: x.reshape(-1, 1),
    "astype": lambda x: x.astype("int32"),
    "median": jnp.median,
    "percentile": lambda x: jnp.percentile(x, 33.3),
    "diff": jnp.diff,
    "take": lambda x: jnp.take(x, jnp.array([0, -1, 1]), mode="clip"),
    "places": lambda x: x[jnp.array([0, -1])],
    "lax sort": lambda x: calque.lax.sort(x),
    "argsort": jnp.argsort,
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x),
    "pad": lambda x: jnp.pad(x, 1),
    "part": lambda x: (x[1:], x[::-1], x[None, ..., :1], x[-2:]),
    "tile": lambda x: jnp.tile(x, 2),
    "outer": lambda x: jnp.outer(x, x),
    "row": lambda x: x * jnp.ones((1,)) + jnp.ones((3,) + x.shape),
    "product": lambda x: x.T @ x,
    "meshgrid": lambda x: jnp.meshgrid(x.ravel(), x.ravel()),
}
SHAPES = [
    (4,),
    (5,),
    (9,),
    (6,),
    (7,),
    (33,),
    (1,),
    (0,),
    (12,),
    (4, 3),
    (5, 3),
    (9, 3),
    (2, 3),
    (6, 3),
    (8, 2),
    (7, 2),
]


def same(a: Any, b: Any) -> bool:
    a, b = calque.tree.leaves(a), calque.tree.leaves(b)
    return len(a) == len(b) and all(
        x.dtype == y.dtype
        and x.shape == y.shape
        and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for x, y in zip(a, b)
    )


def in_python(f: Any, x: Any) -> Any:
    """What Python alone gives."""
    before = callpath.epoch()
    callpath.set_epoch(0)
    try:
        return f(x)
    finally:
        callpath.set_epoch(before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_are_those_of_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, rng = FUNCTIONS[name], np.random.default_rng(0)
    for shape in SHAPES:
        if 0 in shape and name in ("argmax", "percentile", "median", "take", "places"):
            continue
        x = jnp.asarray(rng.random(shape), jnp.float32)
        with monkeypatch.context() as m, np.errstate(all="ignore"):
            m.setattr(Teacher, "miss", lambda self, args, kwargs: self.f(*args, **kwargs))
            want = in_python(f, x)
        assert same(f(x), want), shape
        assert same(f(x), want), shape


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of library functions that entered Python."""
    log, miss = [], Teacher.miss

    def counted(self: Teacher, args: Any, kwargs: Any) -> Any:
        log.append(self.f.__name__)
        return miss(self, args, kwargs)

    monkeypatch.setattr(Teacher, "miss", counted)
    return log


def fresh(f: Any) -> Any:
    """`f` with a call path of its own, that has learned nothing."""
    return cached(lambda *args, **kwargs: f(*args, **kwargs))


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
@pytest.mark.parametrize("name", ["exp", "mean", "sort", "where", "concatenate", "reshape"])
def test_new_shapes_enter_python_three_times(name: str, asked: list[Any]) -> None:
    f = fresh(
        FUNCTIONS[name].__wrapped__ if hasattr(FUNCTIONS[name], "__wrapped__") else FUNCTIONS[name]
    )
    for n in range(3, 60):
        f(jnp.asarray(np.arange(n, dtype="f4")))
    assert asked.count("<lambda>") <= 3


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
def test_a_shape_met_often_gets_an_entry_of_its_own() -> None:
    f = fresh(lambda x: x * 2 + 1)
    for n in range(3, 8):
        f(jnp.ones(n))
    before = callpath.entry_count(f)
    for _ in range(any_size.HOT_AFTER):
        f(jnp.ones(20))
    assert callpath.entry_count(f) == before
    assert f(jnp.ones(20)).tolist() == [3] * 20 and callpath.entry_count(f) == before + 1


def test_sizes_that_python_computes_with_stay_fixed() -> None:
    """0.1 * n by Python is not what float32 gives."""
    f = fresh(lambda x: x + 0.1 * (x.shape[0] * 3 + 1))
    for n in range(3, 300, 7):
        assert same(f(jnp.zeros(n)), jnp.zeros(n) + 0.1 * (n * 3 + 1))


def test_questions_about_sizes() -> None:
    f = fresh(lambda x: x[::2] if x.shape[0] > 10 else x + x.shape[0])
    for n in (3, 20, 4, 21, 5, 30, 10, 11, 2, 1):
        x = jnp.asarray(np.arange(n, dtype="f4"))
        assert f(x).tolist() == (list(range(0, n, 2)) if n > 10 else [i + n for i in range(n)])


def test_sizes_that_depend_on_values() -> None:
    for n in range(3, 40):
        x = jnp.asarray(np.arange(n, dtype="f4"))
        assert x[x > 1].tolist() == list(range(2, n)) and jnp.compress(x > 1, x).tolist() == list(
            range(2, n)
        )
        assert jnp.nonzero(x > 1)[0].tolist() == list(range(2, n)) and jnp.unique(x // 2).shape == (
            (n + 1) // 2,
        )
        assert jnp.repeat(x, 2, total_repeat_length=5).shape == (5,)
    f = calque.jit(lambda x: x[x > 1])
    for n in (3, 4, 5, 6, 7, 7, 7, 8):
        for _ in range(8):
            assert f(jnp.arange(1.0 * n)).tolist() == list(range(2, n))


def test_errors_are_those_of_python() -> None:
    f = fresh(lambda x, y: jnp.concatenate([x, y], axis=1))
    for n in range(3, 8):
        assert f(jnp.ones((n, 2)), jnp.ones((n, 3))).shape == (n, 5)
    with pytest.raises(TypeError, match="concatenate"):
        f(jnp.ones((4, 2)), jnp.ones((5, 3)))
    with pytest.raises(TypeError, match="contract"):
        jnp.ones((4, 2)) @ jnp.ones((3, 2))


def test_products_and_large_sums_have_one_program_for_all_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = []
    compile_program = eager.compile_program
    monkeypatch.setattr(
        eager, "compile_program", lambda *args: compiled.append(1) or compile_program(*args)
    )
    rng = np.random.default_rng(0)
    for n in (20_001, 20_002, 30_000, 25_000, 17_000, 40_000, 16_385, 21_000):
        x = jnp.asarray(rng.random(n), jnp.float32)
        assert same(
            calque.lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), calque.jit(jnp.sum)(x)
        )
    assert len(compiled) <= 4
    for m, k, n in (
        (70, 80, 90),
        (71, 81, 91),
        (100, 65, 70),
        (80, 80, 80),
        (90, 100, 64),
        (65, 66, 67),
        (128, 70, 99),
    ):
        a, b = (
            jnp.asarray(rng.random((m, k)), jnp.float32),
            jnp.asarray(rng.random((k, n)), jnp.float32),
        )
        np.testing.assert_allclose(calque.lax.dot(a, b), np.asarray(a) @ np.asarray(b), rtol=1e-5)
        np.testing.assert_allclose(a @ b, np.asarray(a) @ np.asarray(b), rtol=1e-5)
    assert len(compiled) <= 8
    assert all(len(f.programs) <= 8 for f in eager_families._families.values())
