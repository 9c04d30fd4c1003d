"""Long products with small results: threads share their rounds, and no bit tells."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.library import products
from calque.native.library.shared_rounds import ROUNDS, shares_rounds
from calque.native.library.tiles import Extents
from calque.profiling.steps import described

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "turned": lambda a, b: a.T @ b,
    "computed": lambda a, b: jnp.tanh(a).T @ jnp.where(b > 0, b, 0.0),
    "then": lambda a, b: jnp.exp(-jnp.abs(a.T @ b)) + 1,
    "reshaped": lambda a, b: (a.T @ b).reshape(-1),
    "stored otherwise": lambda a, b: (a.T @ b).astype("float16"),
    "gathered": lambda a, b: a[jnp.arange(len(a)) % 7].T @ b,
}


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return (4 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def compiled(f: Callable[..., Any], *args: np.ndarray) -> Any:
    return calque.jit(lambda *a: f(*a)).lower(*args).compile()


def shared(e: Any) -> bool:
    return f"{ROUNDS}" in e.as_text("loops")


@pytest.mark.parametrize(
    "extents, dtype, answer",
    [
        (Extents(None, 128, 64, 40_000), "f32", True),
        (Extents(None, 48, 48, 4_096), "f32", True),
        (Extents(None, 48, 48, 2_000), "f32", False),  # few rounds
        (Extents(None, 48, 48, 2_000), "f64", True),
        (Extents(None, 47, 64, 40_000), "f32", False),  # few rows
        (Extents(None, 64, 300, 40_000), "f32", False),  # more than stays near
        (Extents(None, 512, 256, 40_000), "f32", False),  # the sums are half of the operands
        (Extents(3, 128, 64, 40_000), "f32", False),
    ],
)
def test_what_is_shared(extents: Extents, dtype: str, answer: bool) -> None:
    assert shares_rounds(extents, dtype) is answer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(48, 64), (53, 61), (130, 48)], ids=str)
def test_the_bits_are_those_of_shared_rows(
    form: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole and ragged tiles and panels, by any number of threads; the last round is short."""
    f = FORMS[form]
    x, y = normal(4_500, shape[0]), normal(4_500, shape[1], seed=1)
    by_rounds = compiled(f, x, y)
    assert shared(by_rounds)
    found = [np.asarray(by_rounds(x, y))]
    threads = calque.get_num_threads()
    try:
        for count in (1, 3):
            calque.set_num_threads(count)
            found.append(np.asarray(by_rounds(x, y)))
    finally:
        calque.set_num_threads(threads)
    monkeypatch.setattr(products, "shares_rounds", lambda *_: False)
    by_rows = compiled(lambda a, b: f(a, b), x, y)
    assert not shared(by_rows)
    assert all(np.array_equal(by_rows(x, y), out) for out in found)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int8], ids=lambda d: d.__name__)
def test_other_types(dtype: Any) -> None:
    with calque.enable_x64():
        x, y = normal(9_000, 60, dtype=dtype), normal(9_000, 50, dtype=dtype, seed=1)
        got = np.asarray(calque.jit(lambda a, b: a.T @ b)(x, y))
        want = x.T.astype(np.int64) @ y if np.dtype(dtype).kind == "i" else x.T @ y
        if np.dtype(dtype).kind == "i":
            assert np.array_equal(got, want.astype(dtype))
        else:
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9)


def test_rows_that_lie_along_the_sum() -> None:
    """x @ y of many rows is shared; few are read where they stand."""
    many, few, y = normal(100, 5_000), normal(60, 5_000), normal(5_000, 64, seed=1)
    f = compiled(lambda a, b: a @ b, many, y)
    assert shared(f) and not shared(compiled(lambda a, b: a @ b, few, y))
    want = many.astype(np.float64) @ y
    np.testing.assert_allclose(f(many, y), want, rtol=1e-4, atol=1e-2)


def test_columns_along_the_sum_are_packed_apart() -> None:
    x, y = normal(100, 5_000), normal(64, 5_000, seed=1)
    f = compiled(lambda a, b: a @ b.T, x, y)
    assert not shared(f)
    np.testing.assert_allclose(f(x, y), x.astype(np.float64) @ y.T, rtol=1e-4, atol=1e-2)


def test_a_free_size_has_the_same_bits() -> None:
    free = calque.jit(lambda a, b: a.T @ b, dynamic={0: (0,), 1: (0,)})
    free(normal(20, 64), normal(20, 64))
    x, y = normal(4_200, 64), normal(4_200, 64, seed=1)
    fixed = calque.jit(lambda a, b: a.T @ b, dynamic="never")
    assert np.array_equal(free(x, y), fixed(x, y))


def test_profiles_know_which_step_multiplies() -> None:
    e = compiled(lambda a, b: a.T @ b, normal(5_000, 64), normal(5_000, 64))
    facts = list(described(e._executable).steps.values())
    assert [f.name for f in facts] == ["matmul", "add up matmul"]
    assert facts[0].flops == 2 * 5_000 * 64 * 64 and facts[1].flops is None
