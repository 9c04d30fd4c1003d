"""Plans: memory that is shared, schedules and their reasons, sizes."""

import re

import numpy as np

import calque
import calque.numpy as jnp
from calque.native.lower.sizes import Sizes
from calque.native.plan.memory import arrange
from calque.native.plan.steps import Copy
from calque.native.scalars.expr import Buffer, const, ex, var
from tests.native.programs import check, compiled, normal


def test_arena_shares_places() -> None:
    a, b, c, d = (Buffer(n, (const(100),), "f32") for n in "abcd")
    size = dict.fromkeys((a, b, c, d), 400)
    steps = [Copy(b, a), Copy(c, b), Copy(d, c)]
    offsets, total = arrange(steps, {b, c, d}, size)
    assert offsets[b] != offsets[c] and offsets[c] != offsets[d]
    assert total == 2 * 448


def test_sizes_small_ones_are_baked() -> None:
    s = Sizes()
    assert s.dim(16).op == "const" and s.dim(17).op == "var"
    assert s.dim(17) is s.dim(17) and s.value(s.dim(1000)) == 1000
    assert s.dim(-3).attr == -3


def test_sizes_decide_by_the_values_behind_the_symbols() -> None:
    s = Sizes()
    i = var("i", s.dim(999))
    assert s.decide("lt", ex("add", i, const(1)), s.dim(1000)) is True
    assert s.decide("lt", ex("add", i, const(2)), s.dim(1000)) is None
    assert s.decide("ge", i, s.dim(2000)) is False
    assert Sizes(known=False).decide("lt", i, s.dim(1000)) is None


def test_every_schedule_has_a_reason() -> None:
    e = compiled(lambda x: jnp.exp(x).sum(0), normal(100, 60))
    assert all(c.schedule.reasons for c in e.calls)
    assert "vector" in e.as_text("loops")


def test_columns_are_vectors_around_serial_sums() -> None:
    e = check(lambda x: x.sum(0), normal(300, 150), tol=1e-3)
    assert "around serial loops" in " ".join(e.calls[0].schedule.reasons)
    e = check(lambda x: x.sum(1), normal(500, 300), tol=1e-3)
    assert "around" not in " ".join(e.calls[0].schedule.reasons)


def test_transposes_run_in_tiles() -> None:
    e = check(lambda x: x.T + 1.0, normal(100, 130))
    assert "tiles" in " ".join(e.calls[0].schedule.reasons)
    check(lambda x: x.T * 2.0, normal(20, 130).astype(np.float32))


def test_large_kernels_run_on_several_threads() -> None:
    e = check(lambda x: jnp.sin(x) * jnp.exp(x), normal(1_000_000), tol=1e-4)
    assert e.calls[0].schedule.extent is not None
    e = check(lambda x: jnp.sin(x), normal(100))
    assert e.calls[0].schedule.extent is None
    check(lambda x: (x * 2.0).sum(), normal(1_000_001), tol=0.5)
    check(lambda x: x.T + 1.0, normal(1000, 1001))


def test_a_kernel_that_takes_long_runs_in_pieces() -> None:
    """Between them signals are looked at; the pieces cover the whole range."""
    shape = calque.ShapeDtypeStruct((6000, 6000), "float32")
    text = calque.jit(lambda x: x @ x).lower(shape).compile().as_text("driver")
    steps = [int(n) for n in re.findall(r"loop r\d+ = 0:\d+:(\d+)", text)]
    assert len(steps) == 1 and steps[0] > 0
    small = calque.ShapeDtypeStruct((300, 300), "float32")
    assert "loop" not in calque.jit(lambda x: x @ x).lower(small).compile().as_text("driver")
