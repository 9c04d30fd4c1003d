"""Results in the place of what dies with them: what may share memory, and how much that saves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, nn
from calque.core.backends import Options
from calque.native.backend import compile
from calque.native.loops.tree import Acc, Body, For, Let, Store, loaded, stored
from calque.native.plan import reuse as plan_reuse
from calque.native.plan.steps import Call
from calque.native.scalars.expr import Buffer, const, ex, load, var
from calque.native.schedule.nests import Schedule

N = 64
A, B, D = (Buffer(name, (const(N), const(N)), "f32") for name in "abd")
I, J = var("i", N), var("j", N)
ONE = const(1.0, "f32")


def at(b: Buffer, *idx: Any) -> Any:
    return load(b, idx or (I, J))


def nest(*body: Any) -> Body:
    return (For(I, (For(J, tuple(body)),)),)


def put(b: Buffer, value: Any, *idx: Any) -> Store:
    return Store(b, idx or (I, J), value)


TOTAL = Acc("r", "sum", at(B))
FLIPPED = ex("sub", const(N - 1), J)
MAY: dict[str, tuple[Body, bool]] = {
    "a map": (nest(put(D, ex("add", at(B), ONE))), True),
    "a map of rows with their sums": (
        (For(I, (For(J, (), (TOTAL,)), For(J, (put(D, at(B)),)))),),
        True,
    ),
    "the sum of all before": ((For(I, (For(J, (), (TOTAL,)),)), *nest(put(D, at(B)))), True),
    "a second reader in a row of stores": (nest(put(D, at(B)), put(A, at(B))), True),
    "one that wants both": (nest(put(D, at(B)), put(A, ex("add", at(B), at(D)))), False),
    "a later reader": ((*nest(put(D, at(B))), *nest(put(A, at(B)))), False),
    "a sum after the store": ((For(I, (For(J, (put(D, at(B)),), (TOTAL,)),)),), False),
    "a transposition": (nest(put(D, at(B, J, I))), False),
    "a row backwards": (nest(put(D, at(B, I, FLIPPED))), False),
    "rows read whole, then written": (
        (For(I, (Let("x", at(B, I, const(0))), For(J, (put(D, ONE),)))),),
        True,
    ),
    "the first row for all": (nest(put(D, at(B, const(0), J))), False),
    "a broadcast column": (nest(put(D, at(B, I, const(0)))), False),
    "nothing read": (nest(put(D, ONE)), True),
}


@pytest.mark.parametrize("name", MAY)
def test_which_kernels_may_write_where_they_read(name: str) -> None:
    body, may = MAY[name]
    assert plan_reuse.reads_before_writing(body, B, D) is may


def test_a_store_that_others_must_not_see_waits() -> None:
    body, _ = MAY["a second reader in a row of stores"]
    (outer,) = plan_reuse.renamed(body, {D: B})
    row = outer.body[0].body
    assert [type(s) for s in row] == [Let, Store, Store]
    assert [s.buf for s in row[1:]] == [A, B]


def test_a_copy_to_itself_goes() -> None:
    assert plan_reuse.renamed(nest(put(D, at(B))), {D: B}) == ()
    left = plan_reuse.renamed((*nest(put(D, at(B))), put(D, ONE, const(0), const(0))), {D: B})
    assert len(left) == 1 and stored(left) == {B} and not loaded(left)


# ---------------------------------------------------------------- whole programs

W = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
SIZE = W.nbytes


TALL = np.random.default_rng(1).standard_normal((512, 64)).astype(np.float32)


def branches(x: Any) -> Any:
    """What two readers want, one of which dies with it."""
    for _ in range(3):
        y = jnp.sin(jnp.cumsum(x, 0))
        x = jnp.cumsum(y * 2, 1) + y
    return x


ARENAS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a map": (lambda x: jnp.sin(x) + 1, 0),
    "a map, all of it, a map": (lambda x: jnp.cumsum(jnp.cumsum(x, 0) * 2, 0), SIZE),
    "maps around running sums": (lambda x: jnp.exp(jnp.cumsum(jnp.sin(jnp.cumsum(x, 1)), 1)), 0),
    "rounds": (lambda x: lax.fori_loop(0, 10, lambda i, c: jnp.sin(c.T) + i, x), SIZE),
    "rounds of maps": (
        lambda x: lax.fori_loop(0, 10, lambda i, c: jnp.sin(c) + c.sum(), x),
        SIZE + 64,
    ),
}


@pytest.mark.parametrize("name", ARENAS)
def test_arenas_are_small(name: str) -> None:
    f, most = ARENAS[name]
    closed = calque.make_jaxpr(f)(W)
    compiled = compile(closed)
    assert compiled.program.arena_bytes <= most, compiled.as_text("driver")


def without_reuse(monkeypatch: pytest.MonkeyPatch, closed: Any) -> Any:
    with monkeypatch.context() as m:
        m.setattr("calque.native.executable.reuse", lambda steps, *rest: (steps, {}))
        return compile(closed, Options(exact=True))


def test_sharing_saves_memory_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = calque.make_jaxpr(branches)(TALL)
    plain, sharing = without_reuse(monkeypatch, closed), compile(closed, Options(exact=True))
    assert sharing.program.arena_bytes < plain.program.arena_bytes
    np.testing.assert_array_equal(sharing.call([TALL])[0], plain.call([TALL])[0])


def test_donated_inputs_serve_as_scratch() -> None:
    """No result has its shape: what is computed between lies in it."""
    closed = calque.make_jaxpr(lambda x: jnp.sort(jnp.sin(x) * 3, axis=1, stable=True).sum(0))(W)
    plain, donating = compile(closed), compile(closed, Options(donated=(0,)))
    assert donating.program.arena_bytes <= plain.program.arena_bytes
    want = plain.call([W])[0]
    x = jnp.array(W) + 0
    np.testing.assert_array_equal(donating.call([x])[0], want)
    assert x.is_deleted()


def test_a_call_whose_buffers_stay_apart_keeps_its_kernel() -> None:
    """Only its names change; where two buffers become one, it is another kernel."""
    call = Call(Schedule(nest(put(D, ex("add", at(B), ONE))), 1.0))
    moved = plan_reuse._renamed_call(call, {D: A})
    assert moved is not None and moved.schedule is call.schedule
    assert (moved.reads(), moved.writes()) == ({B}, {A}) and moved.buffers([B, D]) == [B, A]
    assert (loaded(moved.body), stored(moved.body)) == ({B}, {A})
    other = Buffer("o", (const(N), const(N)), "f32")
    again = plan_reuse._renamed_call(moved, {A: other, D: B})  # D is not among its own any more
    assert again is not None and again.schedule is call.schedule and again.writes() == {other}
    joined = plan_reuse._renamed_call(moved, {A: B})
    assert joined is not None and joined.schedule is not call.schedule
    assert joined.reads() == joined.writes() == {B} and not joined.names
    copies = Call(Schedule(nest(put(D, at(B))), 1.0))
    assert plan_reuse._renamed_call(copies, {D: B}) is None
    assert plan_reuse._renamed_call(copies, {A: D}) is copies


def test_many_buffers_are_not_asked_about_early() -> None:
    """Whether each of many could take the memory of each other is as many questions."""
    many = [Buffer(f"m{k}", (const(N), const(N)), "f32") for k in range(10)]
    for count, apart in ((2, True), (5, False)):
        read, written = many[:count], many[count : 2 * count]
        body = nest(*[put(d, at(b, J, I)) for b, d in zip(read, written, strict=True)])
        call = Call(Schedule(body, 1.0), body)
        assert plan_reuse.keeps_apart(call, {*many}) is apart


@pytest.mark.parametrize("shape", [(5, 2), (17, 3), (65, 4)])
def test_what_waits_is_read_by_its_name(shape: tuple[int, int]) -> None:
    """Rows of a few elements in the place of the argument, which something behind them reads in
    another order."""
    x = np.random.default_rng(3).normal(size=shape).astype("f")
    for f in (
        lambda x: (jnp.sin(x), jnp.sin(x)[:, ::-1]),
        lambda x: (jnp.sin(x), nn.softmax(jnp.sin(x))),
        lambda x: (jnp.exp(x), jnp.exp(x) - jnp.exp(x).mean(1, keepdims=True)),
    ):
        want = f(jnp.asarray(x))
        got = calque.jit(f, donate_argnums=0)(jnp.asarray(x))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


def test_stores_to_one_place_stay_in_their_order() -> None:
    """A first value that waits, since something behind reads the argument that was there, is not
    stored after the second one."""
    x = np.array([-1.0], np.float32)

    def doubled(z: Any) -> Any:
        return lax.dynamic_update_slice(z, z[-1:] + z[:1], (jnp.int32(z[0] > 0),))

    for f in (
        lambda x: doubled(jnp.sin(x)).at[0].add(1.5),
        lambda x: (x * 4).at[::2].add((x * 2)[::2]),
    ):
        got = calque.jit(f, donate_argnums=0)(jnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(got), np.asarray(f(jnp.asarray(x))))
    two = (put(D, ex("mul", at(B), ONE)), put(D, ex("add", at(B), ONE)))
    (outer,) = plan_reuse.renamed(nest(*two), {D: B})
    *_, first, last = outer.body[0].body
    assert first.buf is last.buf is B and first.value is not last.value
    assert [s.name for s in outer.body[0].body if isinstance(s, Let)] == [
        first.value.attr[0],
        last.value.attr[0],
    ]
