"""Places in the arena: nothing that is needed lies under anything else."""

import random

import pytest

from calque.native.plan.memory import (
    ALIGN,
    LEAST,
    Lifetimes,
    _Gaps,
    arrange,
    first_fit,
    in_order,
    lent,
    most_alive,
    swapped,
)
from calque.native.plan.steps import Copy, Repeat, Step, Swap, Switch
from calque.native.scalars.expr import Buffer, const

A, B, C, D, E, F = (Buffer(n, (const(100),), "f32") for n in "abcdef")
FLAG = Buffer("flag", (), "i1")


def test_arena_shares_places() -> None:
    a, b, c, d = (Buffer(n, (const(100),), "f32") for n in "abcd")
    size = dict.fromkeys((a, b, c, d), 400)
    steps = [Copy(b, a), Copy(c, b), Copy(d, c)]
    offsets, total = arrange(steps, {b, c, d}, size)
    assert offsets[b] != offsets[c] and offsets[c] != offsets[d]
    assert total == 2 * 448


def life(
    steps: list[Step], *temporaries: Buffer, after: tuple[Buffer, ...] = ()
) -> dict[str, tuple[int, int]]:
    found = Lifetimes(steps, set(temporaries), after=after)
    return {b.name: (found.first[b], found.last[b]) for b in temporaries if b in found.first}


def test_first_and_last_use() -> None:
    steps = [Copy(B, A), Copy(C, A), Copy(D, B), Copy(A, C)]
    assert life(steps, B, C) == {"b": (1, 3), "c": (2, 4)}
    assert life(steps, D, after=(D,)) == {"d": (3, 5)}
    assert life(steps, E) == {}


def test_what_a_loop_carries_lives_through_all_its_rounds() -> None:
    """Read before it is written, or touched outside as well; what begins and ends in a round does
    not."""
    loop = Repeat([Copy(C, B), Copy(D, C), Copy(B, D)], [], const(3), "k")
    found = life([Copy(B, A), loop, Copy(A, B)], B, C, D)
    start, end = 2, 6
    assert found["b"] == (1, 7) and start < found["c"][0] <= found["c"][1] < end
    late = Repeat([Copy(D, C), Copy(C, A)], [], const(3), "k")
    assert life([late], C) == {"c": (1, 4)}


def test_buffers_that_change_places_live_as_long_as_each_other() -> None:
    loop = Repeat([Copy(C, B)], [(B, C)], const(3), "k")
    found = life([Copy(B, A), loop, Copy(D, A), Copy(A, C)], B, C)
    assert found["b"] == found["c"] == (1, 6)


def test_what_is_stacked_lives_in_all_rounds() -> None:
    """Written piece by piece, read after the loop: no piece may be under what a round needs."""
    loop = Repeat([Copy(B, A), Copy(C, B)], [], const(3), "k")
    found = life([loop, Copy(A, C)], B, C)
    assert found["c"][0] == 1 and found["b"][0] > 1


def test_flags_and_selectors_are_needed() -> None:
    pick = Buffer("pick", (), "i32")
    steps = [Copy(B, A), Switch(pick, [[Copy(C, A)], [Copy(D, B)]])]
    found = life(steps, pick, B)
    assert found["pick"] == (2, 2) and found["b"] == (1, 4)
    loop = Repeat([Copy(C, B)], [], test=[Copy(FLAG, A)], flag=FLAG)
    assert life([loop], FLAG) == {"flag": (1, 4)}


@pytest.mark.parametrize("seed", range(20))
def test_no_two_that_live_overlap(seed: int) -> None:
    """Random straight programs of buffers of random sizes: against all pairs."""
    rng = random.Random(seed)
    buffers = [Buffer(f"t{k}", (const(1),), "u8") for k in range(25)]
    most = 100 if seed % 2 else 1  # in large ones gaps matter
    nbytes = {b: rng.choice([0, 1, 63, 64, 65, 1000, 5000]) * most for b in buffers}
    steps: list[Step] = [Copy(rng.choice(buffers), rng.choice(buffers)) for _ in range(60)]
    offsets, total = arrange(steps, set(buffers), nbytes)
    alive = Lifetimes(steps, set(buffers))
    for x in offsets:
        assert offsets[x] % ALIGN == 0 and offsets[x] + nbytes[x] <= total
        for y in offsets:
            apart = alive.last[x] < alive.first[y] or alive.last[y] < alive.first[x]
            below = offsets[x] + nbytes[x] <= offsets[y] or offsets[y] + nbytes[y] <= offsets[x]
            assert x is y or apart or below
    everything = sum(max(-(-nbytes[b] // ALIGN), 1) * ALIGN for b in offsets)
    assert total <= everything


def test_the_largest_come_first_where_gaps_would_be_left() -> None:
    """a and b end together, but what lies between them is too small for what comes then."""
    small, a, b, large = (Buffer(n, (const(100),), "f32") for n in ("small", "a", "b", "large"))
    size = {small: 64 * 1024, a: 128 * 1024, b: 256 * 1024, large: 384 * 1024}
    steps = [Copy(a, A), Copy(small, a), Copy(b, a), Copy(large, b), Copy(A, large), Copy(A, small)]
    at, total = arrange(steps, set(size), size)
    life = Lifetimes(steps, set(size))
    assert first_fit(in_order(life, size), life, size)[1] > total
    assert total == most_alive(life, size)
    for x in size:
        for y in size:
            apart = at[x] + size[x] <= at[y] or at[y] + size[y] <= at[x]
            alive = life.first[x] <= life.last[y] and life.first[y] <= life.last[x]
            assert x is y or apart or not alive


def test_gaps_are_joined_and_given_first() -> None:
    """Against a map of what is taken, place by place."""
    rng = random.Random(0)
    gaps, taken = _Gaps(), dict[int, int]()
    used: set[int] = set()
    for _ in range(400):
        if taken and rng.random() < 0.5:
            at = rng.choice(sorted(taken))
            size = taken.pop(at)
            gaps.give(at, size)
            used -= set(range(at, at + size))
        else:
            size = rng.randint(1, 9)
            want = next(k for k in range(4000) if used.isdisjoint(range(k, k + size)))
            found = gaps.take(size)
            at = gaps.grow(size) if found is None else found
            assert at == want
            taken[at] = size
            used |= set(range(at, at + size))
        assert gaps.top == max(used, default=-1) + 1
        assert all(a < b for a, b in zip(gaps.ends, gaps.starts[1:], strict=False))
    assert arrange([], set(), {}) == ({}, 0)


def sized(nbytes: int, *buffers: Buffer) -> dict[Buffer, int]:
    return dict.fromkeys(buffers, nbytes)


def test_temporaries_lie_in_results_that_are_written_later() -> None:
    """Two of half its size beside each other; what is read by the step that writes it does not."""
    steps = [Copy(B, A), Copy(C, A), Copy(D, B), Copy(D, C), Copy(F, D), Copy(E, F)]
    nbytes = sized(LEAST, B, C, D, F) | {E: 2 * LEAST}
    found = lent(steps, {B, C, D, F}, [E], nbytes)
    assert {b: at for b, (e, at) in found.items() if e is E} == {B: 0, C: LEAST}
    assert lent(steps, {B, C, D, F}, [E], nbytes | {E: LEAST - 1}) == {}
    assert lent(steps, {B, C, D, F}, [E], nbytes | sized(LEAST - 1, B, C, D, F)) == {}


def test_what_lives_longest_lies_in_the_last_result() -> None:
    """`d` is written early: it is left to those that are gone by then."""
    steps = [Copy(B, A), Copy(C, A), Copy(A, C), Copy(D, A), Copy(A, B), Copy(E, A)]
    found = lent(steps, {B, C}, [D, E], sized(LEAST, B, C, D, E))
    assert found == {B: (E, 0), C: (D, 0)}


def test_results_that_lend_nothing() -> None:
    """Those that nothing writes, those that a loop writes piece by piece until its last round, and
    what changes places."""
    nbytes = sized(LEAST, B, C, D, E)
    assert lent([Copy(B, A), Copy(A, B)], {B}, [E], nbytes) == {}
    loop = Repeat([Copy(B, A), Copy(E, B)], [], const(3), "k")
    assert lent([loop], {B}, [E], nbytes) == {}
    turn = [Copy(B, A), Copy(C, B), Swap(B, C), Copy(A, B), Copy(E, A)]
    assert lent(turn, {B, C}, [E], nbytes) == {}
    assert swapped(Repeat([], [(B, C)])) == (B, C) and swapped(turn[0]) == ()


@pytest.mark.parametrize("seed", range(20))
def test_no_two_that_live_overlap_in_a_result(seed: int) -> None:
    rng = random.Random(seed)
    temporaries = [Buffer(f"t{k}", (const(1),), "u8") for k in range(20)]
    results = [Buffer(f"y{k}", (const(1),), "u8") for k in range(5)]
    nbytes = {b: rng.choice([LEAST, LEAST + 1, 3 * LEAST]) for b in temporaries}
    nbytes |= {b: rng.choice([LEAST - 1, 2 * LEAST, 5 * LEAST]) for b in results}
    steps: list[Step] = [Copy(*rng.sample(temporaries, 2)) for _ in range(25)]
    for b in results:
        steps.insert(rng.randrange(5, len(steps)), Copy(b, rng.choice(temporaries)))
    found = lent(steps, set(temporaries), results, nbytes)
    life = Lifetimes(steps, {*temporaries, *results}, after=results)
    assert found
    for b, (y, at) in found.items():
        assert at % ALIGN == 0 and at + nbytes[b] <= nbytes[y] and life.last[b] < life.first[y]
        for c, (z, there) in found.items():
            beside = at + nbytes[b] <= there or there + nbytes[c] <= at
            apart = life.last[b] < life.first[c] or life.last[c] < life.first[b]
            assert b is c or y is not z or apart or beside
