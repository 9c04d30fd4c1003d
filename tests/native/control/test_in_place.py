"""Carries that are only updated: no round copies them, whatever is read of them beside."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.native.control import in_place
from calque.native.executable import NativeExecutable
from calque.native.plan.steps import Copy, Repeat, walk
from calque.native.plan.text import steps_text
from tests.native.programs import check, compiled, normal

ROWS = 997
WIDTH = 6


def whole_passes(e: NativeExecutable) -> list[str]:
    """What goes over all rows in the rounds of the outermost loops."""
    out: list[str] = []
    for s in e.steps:
        if isinstance(s, Repeat):
            out += [f"copy of {c.src.name}" for c in walk(s.body) if isinstance(c, Copy)]
            out += [f"swap of {a.name}" for r in walk((s,)) if isinstance(r, Repeat)
                    for a, _ in r.swaps if len(a.shape) > 1]  # fmt: skip
            out += [t for t in steps_text((s,)).splitlines() if f"< s{ROWS}" in t]
    return out


def rounds(body: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda b: lax.fori_loop(2, 9, body, b)


def twice(i: Any, b: Any) -> Any:
    b = b.at[i].set(b[i - 1] * 0.5)
    return b.at[i + 1].add(b[i] + b[i - 2])


def row_by_row(i: Any, b: Any) -> Any:
    return lax.fori_loop(1, 5, lambda j, b: b.at[i, j].set(b[i - 1, j] + b[i, j - 1]), b)


def rows_of_a_while_loop(i: Any, b: Any) -> Any:
    def body(c: Any) -> Any:
        return c[0] + 1, c[1].at[i + c[0]].set(c[1][i + c[0] - 1] + 1.0)

    return lax.while_loop(lambda c: (c[0] < 3) & (c[1][i, 0] < 1e3), body, (0, b))[1]


@calque.jit
def jitted(b: Any, i: Any, v: Any) -> Any:
    return b.at[i].set(v)


def inner_choice(i: Any, b: Any) -> Any:
    def even(b: Any) -> Any:
        return lax.cond(b[i, 0] > 0, lambda b: b.at[i].mul(0.5), lambda b: row_by_row(i, b), b)

    return lax.cond(i % 2 == 0, even, lambda b: b, b)


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "the row before": lambda i, b: b.at[i].set(jnp.sin(b[i - 1]) + b[i]),
    "a slice of it": lambda i, b: lax.dynamic_update_slice(
        b, jnp.exp(lax.dynamic_slice(b, (i - 1, 0), (2, WIDTH))), (i, 0)
    ),
    "masked": lambda i, b: b.at[i].set(jnp.where(b[i] > 0.5, b[i - 1] + 1, b[i])),
    "twice": twice,
    "at a place that it says": lambda i, b: b.at[(b[i] > 0).astype(int)].add(b[i - 1, 0]),
    "a choice": lambda i, b: lax.cond(
        i % 2 == 0, lambda b: b.at[i].set(b[i - 1] * 2), lambda b: b, b
    ),
    "a switch": lambda i, b: lax.switch(
        i % 3,
        [lambda b: b.at[i].set(b[i - 1]), lambda b: b, lambda b: twice(i, b)],
        b,
    ),
    "a choice in a choice": inner_choice,
    "a loop inside": row_by_row,
    "a while loop inside": rows_of_a_while_loop,
    "a function inside": lambda i, b: jitted(b, i, b[i - 1] * 2),
    "a loop after an update": lambda i, b: row_by_row(i, b.at[i].set(b[i - 1])),
    "a choice after a loop": lambda i, b: inner_choice(i, row_by_row(i, b)),
    "read before a loop": lambda i, b: row_by_row(i, b).at[i, 0].set(b[i].sum()),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_array_that_is_only_updated_is_never_copied(name: str) -> None:
    e = check(rounds(BODIES[name]), normal(ROWS, WIDTH), tol=1e-4)
    assert any(isinstance(s, Repeat) for s in e.steps) and whole_passes(e) == []


def test_old_values_are_read_before_the_update() -> None:
    def kept(i: Any, c: Any) -> Any:
        b, s, old = c
        before = b[i - 1] + old
        b = b.at[i].set(s * 0.5)
        return b, before * b[i + 1], b[i] - before

    v = normal(ROWS, WIDTH)
    e = check(lambda b: lax.fori_loop(1, 9, kept, (b, b[0], b[1])), v, tol=1e-4)
    assert whole_passes(e) == []

    def stacked(b: Any, i: Any) -> Any:
        new = b.at[i].set(b[i - 1] * 2)
        return new, (b[i], new[i].sum(), b[i - 1, 0])

    e = check(lambda b: calque.tree.leaves(lax.scan(stacked, b, jnp.arange(1, 9))), v, tol=1e-4)
    assert whole_passes(e) == []


def test_lanes_update_their_own_rows() -> None:
    v = normal(3, ROWS, WIDTH)
    places = np.arange(3)

    def body(i: Any, v: Any) -> Any:
        def lane(b: Any, k: Any) -> Any:
            return b.at[i + k].set(b[i + k - 1] * 2)

        return calque.vmap(lane)(v, places)

    assert whole_passes(check(lambda v: lax.fori_loop(1, 9, body, v), v)) == []


def test_several_arrays_in_one_loop() -> None:
    def body(i: Any, cs: Any) -> Any:
        x, out = cs[0][i], []
        for c in cs:
            c = c.at[i].set(x + 1)
            x = x + c[i] * c[i - 1]
            out.append(c)
        return tuple(out)

    v = normal(ROWS, WIDTH) * 0.1
    e = check(lambda b: lax.fori_loop(1, 5, body, (b, b * 2, b * 3)), v, tol=1e-3)
    assert whole_passes(e) == []


def test_what_needs_the_old_array_is_copied() -> None:
    v = normal(ROWS, WIDTH)
    for body in (
        lambda i, b: b.at[i].set(b[i - 1]) * 0.5 + b,
        lambda i, b: b.at[1:].set(b[:-1] * 0.5 + i),
        lambda i, b: (lambda u: jnp.where(u.sum() > b.sum(), u, b))(b.at[i].set(b[i - 1])),
    ):
        assert whole_passes(check(rounds(body), v, tol=1e-3)) != []

    def two(i: Any, c: Any) -> Any:
        return c[1], c[0].at[i].set(c[1][i - 1])  # they change places

    check(lambda b: lax.fori_loop(1, 6, two, (b, b * 2)), v)
    check(lambda b: lax.fori_loop(1, 6, lambda i, c: (c[0].at[i].add(1.0), c[0]), (b, b)), v)
    check(
        lambda b: lax.fori_loop(
            1, 6, lambda i, c: (c[0].at[i].add(c[1][i]), c[0].at[i - 1].mul(2.0)), (b, b)
        ),
        v,
    )


def test_branches_that_disagree_copy() -> None:
    def body(i: Any, c: Any) -> Any:
        return lax.cond(
            i % 2 == 0, lambda a, b: (a.at[i].set(b[i]), b), lambda a, b: (b, a), *c
        )  # fmt: skip

    v = normal(ROWS, WIDTH)
    check(lambda b: lax.fori_loop(1, 6, body, (b, b * 2)), v)

    def handed_on_twice(i: Any, c: Any) -> Any:
        def yes(a: Any) -> Any:
            new = a.at[i].set(a[i - 1] * 0.5)
            return new, a[i] + new[i]

        return lax.cond(i % 2 == 0, yes, lambda a: (a, a[i - 1]), c[0])

    e = check(lambda b: lax.fori_loop(1, 6, handed_on_twice, (b, b[0])), v)
    assert whole_passes(e) == []


def test_outside_of_loops() -> None:
    """What dies is handed to branches and loops; what is needed, or not ours, stays."""

    def f(b: Any, k: Any) -> Any:
        t = jnp.cumsum(b, axis=0)
        u = lax.cond(k > 0, lambda t: t.at[k].set(t[k - 1]), lambda t: t, t)
        return rounds(row_by_row)(u).sum(0)

    e = check(f, normal(ROWS, WIDTH), np.int32(3), tol=1e-2)
    assert not any(isinstance(s, Copy) for s in walk(e.steps))

    def g(b: Any, k: Any) -> Any:
        t = jnp.cumsum(b, axis=0)
        u = lax.cond(k > 0, lambda t: t.at[k].set(t[k - 1]), lambda t: t, t)
        return rounds(row_by_row)(u).sum(0), t.sum(0), rounds(row_by_row)(b) + b

    check(g, normal(ROWS, WIDTH), np.int32(3), tol=1e-2)
    donated = calque.jit(rounds(row_by_row), donate_argnums=0)
    b = jnp.asarray(normal(ROWS, WIDTH))
    want, place = rounds(row_by_row)(b), b.unsafe_buffer_pointer()
    got = donated(b)
    assert got.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_effects_keep_their_order() -> None:
    seen: list[tuple[str, float]] = []

    def note(name: str) -> Callable[[Any], None]:
        return lambda x: seen.append((name, float(x)))

    def body(i: Any, b: Any) -> Any:
        new = b.at[i].set(b[i - 1] * 2)
        calque.debug.callback(note("new"), new[i, 0], ordered=True)
        calque.debug.callback(note("old"), b[i, 0], ordered=True)
        return new

    out = calque.jit(rounds(body))(jnp.ones((ROWS, WIDTH)))
    calque.effects_barrier()
    assert seen == [p for i in range(2, 9) for p in (("new", 2.0 ** (i - 1)), ("old", 1.0))]
    assert float(out[8, 0]) == 128.0


class Body:
    """A random body of a loop over two arrays: updates, reads before and after, choices, loops."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, i: Any, c: Any, depth: int = 0, salt: int = 0) -> Any:
        r = random.Random(self.seed * 1000 + salt)
        values, rows = [*c], [c[0][i], c[1][i - 1]]
        arrays = list(c)
        for k in range(r.randrange(2, 6)):
            w = r.randrange(2)
            a = arrays[w]
            match r.randrange(7 if depth < 2 else 4):
                case 0:
                    arrays[w] = a.at[i].set(r.choice(rows) * 0.5 + a[i - 1])
                case 1:
                    arrays[w] = a.at[i, 1:3].add(r.choice(values)[i + 1, :2])
                case 2:
                    rows.append(r.choice(values)[i + r.randrange(-1, 2)] + r.choice(rows) * 0.25)
                case 3:
                    at = jnp.stack([i - 1, i + 1])
                    arrays[w] = a.at[at].multiply(r.choice(values)[at] * 0.5)
                case 4:
                    inner = salt * 7 + k + 1
                    arrays = [
                        *lax.cond(
                            r.choice(rows).sum() > 0,
                            lambda c, s=inner: self(i, c, depth + 1, s),
                            lambda c: c if r.random() < 0.5 else (c[0], c[1].at[i].mul(0.5)),
                            tuple(arrays),
                        )
                    ]
                case 5:
                    inner = salt * 7 + k + 1
                    arrays = [
                        *lax.fori_loop(
                            1, 3, lambda j, c, s=inner: self(i + j, c, depth + 1, s), tuple(arrays)
                        )
                    ]
                case 6:
                    arrays[w] = a.at[i].set(jnp.tanh(a[i + 1]) + values[-1][i])
            values.append(arrays[w])
        total = sum(rows[1:], rows[0])
        return tuple(x.at[i].add(jnp.tanh(total) * 0.1) for x in arrays)


@pytest.mark.parametrize("seed", range(24))
def test_random_bodies(seed: int) -> None:
    v = normal(101, 5, seed=seed) * 0.5
    body = Body(seed)
    check(lambda a, b: list(lax.fori_loop(2, 6, body, (a, b))), v, v[::-1].copy(), tol=1e-3)


def test_chains_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop in a loop in a loop is looked through once for each way of asking."""
    asked: list[str] = []
    whole = in_place.homes_of

    def counted(name: str, *args: Any) -> Any:
        asked.append(name)
        return whole(name, *args)

    monkeypatch.setattr(in_place, "homes_of", counted)

    def deep(i: Any, b: Any) -> Any:
        return lax.fori_loop(
            0, 2, lambda _, b: lax.fori_loop(0, 2, lambda _, b: row_by_row(i, b), b), b
        )

    compiled(rounds(deep), normal(ROWS, WIDTH))
    assert len(asked) <= 12
