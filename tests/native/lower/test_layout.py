"""Layout as changes of the index: every element, read where it stands and nowhere else."""

import itertools

import numpy as np
import pytest

import calque.numpy as jnp
from calque import lax
from calque.core.primitives import do
from calque.native.lower import layout
from calque.native.lower.rules import Lower
from calque.native.lower.sizes import Sizes
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import FALSE, TRUE, ZERO, const, ex, param, ref, var
from tests.native.lower.shared import Elements, check
from tests.native.programs import normal

TWO, THREE = normal(5, 7), normal(2, 3, 4)
NO = np.float32(9)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: do.broadcast_in_dim(
            x, shape=(5, 2, 7), broadcast_dimensions=(0, 2), sharding=None
        ),
        lambda x: x[:, :1] + jnp.zeros((5, 7)),
        lambda x: x.T,
        lambda x: x[1::2, ::-3],
        lambda x: x.reshape(7, 5),
        lambda x: x.reshape(35),
        lambda x: x[None, :, None].squeeze((0, 2)),
        lambda x: do.rev(x, dimensions=(0, 1)),
        lambda x: lax.pad(x, NO, ((1, 2, 0), (0, 0, 0))),
        lambda x: lax.pad(x, NO, ((-2, 1, 0), (3, -1, 2))),
        lambda x: lax.pad(x, NO, ((-9, 20, 1), (0, 0, 0))),
        lambda x: jnp.concatenate([x, x[:2], x[:0], x * 2]),
        lambda x: jnp.concatenate([x[:, 3:], x], 1),
        lambda x: jnp.concatenate([lax.pad(x, NO, ((1, 0, 0), (0, 0, 0))), x.T.reshape(5, 7)]).T,
    ],
)
def test_every_element(f) -> None:  # type: ignore[no-untyped-def]
    check(f, TWO)


def test_reshapes_between_all_shapes_of_24() -> None:
    """One read, at an address that an unneeded division would spoil: none where a dimension
    survives."""
    shapes = [
        s for r in range(1, 4) for s in itertools.product((1, 2, 3, 4, 6, 8, 12, 24), repeat=r)
    ]
    shapes = [s for s in shapes if np.prod(s) == 24]
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = (shapes[k] for k in rng.integers(len(shapes), size=2))
        x = np.arange(24, dtype=np.float32).reshape(a)
        e = check(lambda x, b=b: x.reshape(b), x)
        assert len(e.loads()) == 1
    known = Sizes()
    i, j, k = (var(n, known.dim(d)) for n, d in zip("ijk", (100, 30, 40)))
    assert layout.reindex(known, (i, j, k), (100, 30, 40), (100, 1200))[0] is i
    assert layout.reindex(known, (i, j, k), (100, 30, 40), (3000, 40))[1] is k
    assert layout.reindex(known, (i, ZERO, k), (100, 1, 40), (100, 40)) == (i, k)
    assert layout.reindex(known, (i,), (0,), (0, 3)) == (ZERO, ZERO)


@pytest.mark.parametrize("start", [-100, -1, 0, 2, 3, 100])
def test_slices_at_computed_places_are_clamped(start: int) -> None:
    at = np.int32(start)
    check(lambda x, i: do.dynamic_slice(x, i, i, slice_sizes=(2, 7)), TWO, at)
    check(lambda x, i: do.dynamic_update_slice(x, x[:2, :3] * 10, i, i), TWO, at)
    check(lambda x, i: do.dynamic_update_slice(x, x * 10, i, i), TWO, at)
    wide = np.uint32(2**32 - 1) if start == 100 else np.uint32(max(start, 0))
    check(lambda x, i: do.dynamic_slice(x, i, i, slice_sizes=(2, 7)), TWO, wide)


def test_clamped_indices_of_every_type() -> None:
    low = Lower(Sizes())
    top = low.sizes.dim(10)
    assert layout.clamped(low, const(-4, "i32"), top) is ZERO
    assert layout.clamped(low, const(99, "i64"), top) is const(10)
    small = param("k", "u8")
    inside = layout.clamped(low, small, low.sizes.dim(300))
    assert {e.op for e in (inside, *inside.args)} <= {"cast", "param"}  # nothing to clamp
    for dtype in ("i8", "u64", "i64"):
        e = layout.clamped(low, param("k", dtype), top)
        assert low.sizes.interval(e) == (0, 10)


def test_iota_of_every_kind() -> None:
    for dtype in (np.int8, np.uint16, np.float32, np.float16, np.complex64):
        for d in (0, 1):
            f = lambda dtype=dtype, d=d: do.iota(dimension=d, dtype=np.dtype(dtype), shape=(3, 20))  # noqa: E731
            np.testing.assert_array_equal(
                Elements(f).result(), np.indices((3, 20))[d].astype(dtype)
            )


def test_conditions_leave_out_what_is_certain() -> None:
    low = Lower(Sizes())
    n = low.sizes.dim(100)
    i = var("i", n)
    assert layout.in_bounds(low, i, n) is TRUE
    assert layout.in_bounds(low, ex("sub", i, const(3)), n).op == "ge"
    assert layout.in_bounds(low, ex("add", i, const(3)), n).op == "lt"
    assert layout.in_bounds(low, ex("add", i, n), n) is FALSE
    wild = param("k", "i64")
    assert layout.in_bounds(low, wild, n).op == "and"


def test_guards_and_choices_of_both_parts() -> None:
    ok, x = ref("ok", "i1"), param("x", "f32")
    pair = Cx(x, const(1.0, "f32"))
    chosen = layout.choose(ok, pair, Cx(const(2.0, "f32"), const(1.0, "f32")))
    assert chosen.re.op == "select" and chosen.im is const(1.0, "f32")
    assert layout.guarded(x, ok) is x and layout.guarded(pair, TRUE) is pair


def test_joined_pieces_are_chosen_once() -> None:
    """Three pieces, two choices; a piece that an index surely lies in, none."""
    e = check(lambda x: jnp.concatenate([x, x * 2, x * 3]), TWO)
    _, value = e.element()
    assert value.op == "select"
    f = Elements(lambda x: jnp.concatenate([x, x * 2, x * 3])[6:9], TWO)
    (_, value), w = f.element(), f.loads()
    assert value.op == "mul" and len(w) == 1
    np.testing.assert_array_equal(f.result(), TWO[1:4] * 2)
