"""Every primitive in parallel: with every loop worth a thread, and with as many lanes of one case
as make its operands large. One thread and two give the same bits, which are those of the NumPy
meaning."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import to_numpy
from calque.core.config import config
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine.threads import get_num_threads, set_num_threads
from calque.native import backend
from calque.native.schedule import threads as sharing
from tests.native import cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce
from tests.native.cases import TABLE, Case, meaning, program, split_results, verify

MODULES = (cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce)
ELEMENTS = 400_000  # of all operands: far more than what is worth a thread
CASES = 6  # of each primitive, taken from all over its list
SLOW = {"eig", "schur", "hessenberg", "svd", "eigh"}  # hundreds of lanes of these say enough
WITHOUT_LANES = {
    "debug_callback": "has an effect",
    "empty": "its elements are any",
    "pure_callback": "the case says nothing of lanes",
    "rng_bit_generator": "gives other numbers under vmap",
}


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = get_num_threads()
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's meanings at nan and infinity
        yield
    set_num_threads(before)


@pytest.fixture
def every_loop_is_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PARALLEL_NS": -1, "GRAIN_NS": 0, "SPLIT": 8, "TILES": 8}.items():
        monkeypatch.setattr(sharing, name, value)


def some(name: str) -> list[Case]:
    """A few cases with elements, from the first to the last."""
    cases = [c for c in TABLE[name]() if all(typeof(a).size for a in c.args)]
    return cases[:: max(1, -(-len(cases) // CASES))]


def with_threads(run: Any) -> list[list[np.ndarray]]:
    """The results with one thread and with two."""
    out = []
    for count in (1, 2):
        set_num_threads(count)
        out.append([np.asarray(to_numpy(r)) for r in run()])
    return out


def same_bits(one: Sequence[np.ndarray], two: Sequence[np.ndarray], what: Any) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.tobytes() == b.tobytes(), f"{what}: two threads give other bits than one"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_loop_in_parallel(name: str, every_loop_is_parallel: None) -> None:
    cases = some(name)
    fun, args = program(cases)
    compiled = backend.compile(trace_to_jaxpr(fun, [typeof(a) for a in args]))
    one, two = with_threads(lambda: compiled.call(args))
    if name != "empty":
        same_bits(one, two, name)
    for c, got in split_results(cases, two):
        verify(c, got, meaning(c), "in parallel")


@pytest.mark.parametrize("name", sorted(set(TABLE) - set(WITHOUT_LANES)))
def test_many_lanes(name: str) -> None:
    cases = [c for c in some(name) if c.args and not c.prim.effect]
    for c in cases[len(cases) // 2 :][:1]:
        size = max(1, sum(typeof(a).size for a in c.args))
        lanes = min(ELEMENTS // size + 1, 300 if name in SLOW else 50_000)
        many = [typeof(a).size > 1 for a in c.args]  # some take no lanes of initial values
        axes = [0 if m or not any(many) else None for m in many]
        stacked = [
            a if d is None else jnp.broadcast_to(jnp.asarray(a), (lanes, *typeof(a).shape))
            for a, d in zip(c.args, axes, strict=True)
        ]

        def fun(*xs: Any, c: Case = c) -> Any:
            out = c.prim.bind(*xs, **c.params)
            return list(out) if c.prim.multiple_results else [out]

        run = jax.jit(jax.vmap(fun, axes))
        one, two = with_threads(lambda: run(*stacked))
        same_bits(one, two, c)
        want = meaning(c)
        for at in (0, lanes // 2, lanes - 1):
            verify(c, [r[at] for r in two], want, f"lane {at} of {lanes}")
        if c.check is None:  # every lane has the same operands
            assert all(r.tobytes() == r[:1].tobytes() * lanes for r in two), c


UPDATES = {
    "a_vector": ((400_000,), (300_000,), (99,)),
    "little_of_a_vector": ((400_000,), (5,), (399_999,)),
    "rows": ((4, 400_000), (1, 400_000), (2, 0)),
    "columns": ((400, 1000), (400, 1), (0, 7)),
    "a_cache_of_keys": ((2, 512, 8, 64), (2, 1, 8, 64), (0, 31, 0, 0)),
    "a_box": ((60, 90, 100), (50, 20, 70), (3, 4, 5)),
}


@pytest.mark.parametrize("case", UPDATES)
@pytest.mark.parametrize("threads", [1, 2])
def test_updates_of_large_arrays(case: str, threads: int) -> None:
    """What lies around an update is copied by loops whose length its start decides."""
    shape, part, start = UPDATES[case]
    set_num_threads(threads)
    rng = np.random.default_rng(3)
    x, u = (rng.standard_normal(s).astype(np.float32) for s in (shape, part))
    at = [min(s, n - p) for s, n, p in zip(start, shape, part, strict=True)]
    box = tuple(slice(s, s + p) for s, p in zip(at, part, strict=True))
    want = x.copy()
    want[box] = u
    run = jax.jit(lambda x, u, *s: lax.dynamic_update_slice(x, u, s))
    np.testing.assert_array_equal(run(x, u, *start), want)
    grad = jax.jit(jax.grad(lambda x, *s: (lax.dynamic_slice(x, s, part) ** 2).sum()))
    expected = np.zeros_like(x)
    expected[box] = 2 * x[box]
    np.testing.assert_array_equal(grad(x, *start), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_updates_in_loops(threads: int) -> None:
    set_num_threads(threads)
    x = np.random.default_rng(4).standard_normal((400, 1000)).astype(np.float32)

    def body(c: Any, i: Any) -> Any:
        row = lax.dynamic_index_in_dim(x, i * 3, 0, keepdims=False) + i
        return lax.dynamic_update_index_in_dim(c, row, i * 7, 0), c.sum()

    def kept(c: Any, i: Any) -> Any:  # the old array is read after the update
        return c, lax.dynamic_update_index_in_dim(c, c[0] + i, i * 7, 0)

    want = x.copy()
    for i in range(4):
        want[i * 7] = x[i * 3] + i
    np.testing.assert_array_equal(jax.jit(lambda c: lax.scan(body, c, jnp.arange(4))[0])(x), want)
    copies = jax.jit(lambda c: lax.scan(kept, c, jnp.arange(4))[1])(x)
    for i in range(4):
        want = x.copy()
        want[i * 7] = x[0] + i
        np.testing.assert_array_equal(copies[i], want)


@pytest.mark.parametrize("threads", [1, 2])
def test_updates_of_free_sizes(threads: int) -> None:
    set_num_threads(threads)
    run = jax.jit(lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)))
    for n in (300_000, 500_000, 400_001, 123):
        want = np.zeros(n, np.float32)
        want[77:97] = 1
        got = run(jnp.zeros(n, jnp.float32), jnp.ones(20, jnp.float32), 77)
        np.testing.assert_array_equal(got, want)
