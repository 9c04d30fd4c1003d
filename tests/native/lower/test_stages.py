"""Stages run turn by turn in Python: what each writes, how its loops stand, and what it says of
itself."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, do
from calque.native.loops.tree import Fold, round_of
from calque.native.lower import stages
from calque.native.lower.reductions import CHUNK
from calque.native.lower.rules import Lower
from calque.native.lower.sizes import Sizes
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import ZERO, const, param, ref, var
from tests.native.lower.shared import Elements, check_stages
from tests.native.programs import check, normal


def whole(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32)


def only(f: Any, *args: np.ndarray) -> stages.Stage:
    (s,) = Elements(f, *args).stages()[0]
    return s


def test_loops_are_named_by_depth_and_none_is_of_one_turn() -> None:
    low = Lower(Sizes())
    dims, idx = stages.loops_of(low, (100, 1, 3))
    assert [d.attr[0] for d in dims] == ["d0", "d1"] and idx == (dims[0], ZERO, dims[1])
    assert stages.loops_of(low, (100,), 2)[0][0].attr[0] == "d2"
    unknown = Lower(Sizes(known=False))
    assert len(stages.loops_of(unknown, (1, 1))[0]) == 2


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions(kind: str, axis: int) -> None:
    x = whole(3, 4, 5)
    e = check_stages(lambda x: getattr(jnp, kind)(x, axis), x)
    (s,) = e.stages()[0]
    assert s.rank == 2 and len(s.dims) == 3 and not s.running and len(s.accs) == 1


def test_reductions_of_pairs() -> None:
    """A sum is two sums; a product one fold of two values, turn by turn."""
    z = (whole(3, 4) + 1j * whole(3, 4, seed=1)).astype(np.complex64)
    check_stages(lambda z: z.sum(1), z)
    s = only(lambda z: z.prod(1), z)
    assert isinstance(s.accs[0], Fold) and s.accs[0].order == "sequential"
    check_stages(lambda z: z.prod(1), z)


def test_chunks_of_long_extents() -> None:
    """The last chunk is shorter; one long sum is stored, so that its chunks can be shared out."""
    for size, whole_chunks in ((2 * CHUNK, True), (CHUNK + 3, False)):
        e = Elements(jnp.sum, np.zeros(size, "f4"))
        chunks = next(n for n in e.graph.nodes if n.op == "reduce_chunks")
        buf = stages.View(stages.Buffer("c", (e.low.sizes.dim(chunks.shape[0]),), "f32"))
        (s,) = stages.stages_of(e.low, chunks, buf)
        assert (s.dims[-1].attr[1] is const(CHUNK)) == whole_chunks and not s.local
        env = {"d0": chunks.shape[0] - 1}
        assert e.value(s.dims[-1].attr[1], env) == (size - 1) % CHUNK + 1


@pytest.mark.parametrize("kind", sorted(stages.CUMULATIVE))
@pytest.mark.parametrize("axis, reverse", [(0, False), (1, False), (1, True)])
def test_running_folds(kind: str, axis: int, reverse: bool) -> None:
    """The loop along the axis stands last; every turn stores."""
    x = whole(3, 5)
    tol = 1e-5 if kind == "cumlogsumexp" else 0.0
    f = lambda x: REGISTRY[kind].bind(x, axis=axis, reverse=reverse)  # noqa: E731
    e = check_stages(f, x, tol=tol)
    (s,) = e.stages()[0]
    assert s.running and s.rank == len(s.dims) == 2
    assert s.local == (axis == 1 and not reverse)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "dtype, of_last, of_all",
    [("float16", 1e-3, 2e-3), ("bfloat16", 8e-3, 2e-2), ("float32", 1e-7, 4e-7)],
)
def test_long_running_sums_lose_no_digits(
    axis: int, dtype: str, of_last: float, of_all: float
) -> None:
    """Equal numbers, whose roundings all point the same way; what is carried is a wider float."""
    n = 100_003
    x = jnp.full((n, 3) if axis == 0 else (3, n), 0.1 if dtype == "float32" else 0.003, dtype)
    got = np.moveaxis(np.asarray(calque.jit(lambda x: x.cumsum(axis))(x)), axis, 0).astype("f8")
    want = np.arange(1, n + 1)[:, None] * float(x[0, 0])
    assert np.allclose(got[-1], want[-1], rtol=of_last, atol=0)
    assert np.allclose(got, want, rtol=of_all, atol=0)


def test_long_running_logsumexps_lose_no_digits() -> None:
    n = 200_003
    got = np.asarray(lax.cumlogsumexp(jnp.zeros(n)))
    assert np.abs(got - np.log(np.arange(1, n + 1))).max() < 2e-6


def test_where_a_mask_is_true() -> None:
    """Each place is written where as many true ones stand before it."""
    e = Elements(lambda m: m, np.array([False, True, True, False, True, False]))
    mask = e.graph.inputs[0]
    n = stages.Node("places", (mask,), {}, ShapedArray((7,), np.dtype("int32")), 99)
    home = stages.View(stages.Buffer("p", (const(7),), "i32"))
    (s,) = stages.stages_of(e.low, n, home)
    e.arrays[s.buf] = np.full(7, -1, "i4")
    e.run(s)
    assert e.arrays[s.buf][:3].tolist() == [1, 2, 4]
    assert s.colliding == 1 and not s.local and s.running


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 1), (1, 5))])
def test_products_of_matrices(shapes: Any) -> None:
    x, y = whole(*shapes[0]), whole(*shapes[1], seed=1)
    check_stages(lambda x, y: x @ y, x, y)
    z = x.astype(np.complex64) * (1 + 2j)
    check_stages(lambda z, y: z @ y, z.astype(np.complex64), y.astype(np.complex64))


def test_sums_in_order_are_taken_in_rounds_where_they_may_be_long() -> None:
    low = Lower(Sizes())
    turns = round_of("f32")
    for n, rounds in ((turns, 0), (turns + 1, turns)):
        k = var("k", low.sizes.dim(n))
        (acc,), _ = stages.sum_in_order(low, "s", ref("x", "f32"), k)
        assert (acc.order, acc.round) == ("sequential", rounds)


@pytest.mark.parametrize("start", [-3, 0, 2, 9])
@pytest.mark.parametrize("window", [(2, 3), (4, 1), (1, 5), (4, 5), (0, 2)])
def test_updates_copy_what_lies_around(start: int, window: tuple[int, int]) -> None:
    """Each element is written once, by the box or by what is around it."""
    x, u, at = whole(4, 5), whole(*window, seed=1) + 100, np.int32(start)
    e = check_stages(lambda x, u, i: do.dynamic_update_slice(x, u, i, i), x, u, at)
    made, buf = e.stages()
    written = np.zeros((4, 5), int)
    for s in made:
        for env in e.turns(s.dims, {}):
            written[tuple(int(e.value(i, env)) for i in s.idx)] += 1
    assert (written == 1).all()


def test_updates_in_place_write_their_box_alone() -> None:
    x, u, at = whole(4, 5), whole(2, 2, seed=1), np.int32(1)
    e = Elements(lambda x, u, i: do.dynamic_update_slice(x, u, i, i), x, u, at)
    (n,) = e.graph.outputs
    (s,) = stages.stages_of(e.low, n, e.low.view[n.args[0]])
    e.run(s)
    want = x.copy()
    want[1:3, 1:3] = u
    np.testing.assert_array_equal(e.arrays[s.buf], want)


PLACES = np.array([3, 0, 3, -1, 9, 0, -20], np.int32)


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max", "subtract"])
@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_scatters_in_their_order(how: str, mode: str) -> None:
    """Those of one place, one after another."""
    x, u = whole(5), np.arange(1, 8, dtype=np.float32)
    f = lambda x, i, u: getattr(x.at[i], how)(u, mode=mode)  # noqa: E731
    e = check_stages(f, x, PLACES, u)
    made = e.stages()[0]
    assert len(made) == 2 and made[1].colliding == 1 and not made[1].local


def test_scatters_of_windows_keep_the_collisions_outside() -> None:
    x, u = whole(5, 3), whole(7, 3, seed=1)
    e = check_stages(lambda x, i, u: x.at[i].add(u, mode="drop"), x, PLACES, u)
    made = e.stages()[0]
    assert made[1].colliding == 1 and made[1].rank == 2
    unique = Elements(lambda x, i, u: x.at[i].add(u, unique_indices=True), x, PLACES[:2], u[:2])
    assert unique.stages()[0][1].colliding == 0


def test_a_program_of_the_user_combines() -> None:
    """`scatter_apply` and the like bring a program of scalars."""
    x = whole(5)
    check_stages(lambda x, i: x.at[i].apply(lambda v: v * 2 + 1), x, np.array([0, 3]))


def test_many_pieces_are_written_one_by_one() -> None:
    x = whole(2, 3)
    f = lambda x: jnp.concatenate([x, x * 2, x[:0], x * 3, x * 4])  # noqa: E731
    e = check_stages(f, x)
    assert len(e.stages()[0]) == 4
    columns = [x[:, :1] * k for k in range(1, 6)]
    e = check_stages(lambda *c: jnp.concatenate(c, 1), *columns)
    (s,) = e.stages()[0]
    assert len(s.parts) == 5 and s.rank == 1  # side by side, in one go
    few = only(lambda x: jnp.concatenate([x, x * 2]), x)
    assert few.rank == 2


def test_rows_found_by_indices_are_joined_piece_by_piece() -> None:
    """Else every lane of a vector asks for the place of its own element."""
    x, i = whole(9, 20), np.array([3, 0, 8, 3, 5, 1])

    def pairs(x: Any, i: Any) -> Any:
        return jnp.concatenate([x[i], x[i[::-1]] * 2], 1)

    e = check_stages(pairs, x, i)
    assert len(e.stages()[0]) == 2
    only(lambda x: jnp.concatenate([x, x * 2], 1), x)
    check(lambda x, i: jnp.tanh(pairs(x, i)) @ pairs(x, i).T, x, i)
    check(lambda x, i: pairs(x + 1j, i).sum(0), x, i)


def pooled(x: Any) -> Any:
    return lax.reduce_window(x, x.dtype.type(0), lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def test_what_is_reshaped_keeps_its_loops() -> None:
    """Else quotients and remainders of the index make every element of a vector a load of its
    own."""
    x = whole(3, 4, 6, 8)
    e = check_stages(lambda x: jnp.maximum(pooled(x).reshape(3, -1) * 2, 1), x)
    (s,) = e.stages()[0]
    assert [d.attr[1].attr for d in s.dims] == [3, 2, 3, 8] and not s.local
    assert not stages.reads_apart(s)
    plain = only(lambda x: (x * 2 + 1).reshape(3, -1), x)
    assert len(plain.dims) == 2 and plain.local  # one element after the other already
    check(lambda x: pooled(x).reshape(3, -1) @ jnp.ones((48, 5), np.float32), x)
    check(lambda x: pooled(x + 1j).reshape(3, -1), x)
    check(lambda x: jnp.sort(pooled(x).reshape(-1)), x)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_short_rows_are_not_loops_of_their_own(width: int) -> None:
    s = only(lambda x: pooled(x).reshape(3, -1), whole(3, 4, 6, width))
    assert len(s.dims) == 2


def test_what_no_loops_read_in_steps_stays_as_it_is() -> None:
    """Neither loop order helps where a place is looked up."""
    x, i = whole(9, 20), np.array([3, 0, 8, 3, 5, 1])
    e = check_stages(lambda x, i: (x[:, i * 2][:, ::2] * 2).reshape(-1)[::-1], x, i)
    assert len(e.stages()[0][0].dims) == 1


def test_what_a_stage_reads_and_weighs() -> None:
    x = whole(3, 4)
    s = only(lambda x: jnp.sin(x) + x.T.reshape(3, 4), x)
    assert len(s.reads) == 2 and {b.name for b in s.buffers_read} == {"x0"}
    heavier = only(lambda x: jnp.sin(jnp.sin(x)) + x.T.reshape(3, 4), x)
    assert heavier.weight > s.weight > only(lambda x: x + 1, x).weight > 0


def test_parts_of_values() -> None:
    x = param("x", "f32")
    assert stages.parts_of(x) == (((), x),)
    assert [s for s, _ in stages.parts_of(Cx(x, x))] == [(ZERO,), (const(1),)]


def test_folds_of_flags_are_logic() -> None:
    flag = ref("b", "i1")
    ops = {kind: stages.accumulate("r", kind, flag)[0][0].op for kind in ("max", "min", "sum")}
    assert ops == {"max": "or", "min": "and", "sum": "or"}
    assert only(lambda x: jnp.any(x > 0, 0), normal(4, 3)).accs[0].op == "or"
