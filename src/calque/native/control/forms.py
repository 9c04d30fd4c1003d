"""Control flow: loops and branches as steps of the driver, or, where a loop is small, as one native
loop inside a kernel.

A loop is tried in this order: all that it carries in registers (`nested`), the loops over elements
outside and the rounds inside (`pointwise`), a loop of the driver around kernels. All give the
same results; they differ in what a round costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from calque.native.control.in_place import in_place, updated_pairs
from calque.native.control.invariant import taken_out
from calque.native.control.loops import (
    LoopParts,
    NotPointwiseError,
    alias,
    bind,
    loop_parts,
    turn_matrices,
    unchanged,
)
from calque.native.control.nested import lanes_loop, scalar_loop
from calque.native.control.pointwise import pointwise_loop
from calque.native.control.together import lanes_together
from calque.native.lower.graph import Graph, Node
from calque.native.lower.rules import View
from calque.native.lower.stages import box_stage, boxes_around
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Compute, Copy, Count, Repeat, Step, Swap, Switch
from calque.native.scalars.expr import Buffer, Expr, cast, const, ex


def emit_loop(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """scan or while."""
    p.depth += 1
    loop = loop_parts(p, n, block.order, f"t{p.depth}.{n.id}")
    before: list[Step] = []
    if loop.count is not None:
        before.append(Count(str(loop.t.attr[1].attr[0]), p.in_memory(loop.count, block)))
    effects = loop.body.effects or (loop.test is not None and loop.test.effects)
    for form in SMALL_LOOPS if not effects else ():
        attempt = p.attempt()
        try:
            steps = form(attempt, loop, block)
        except NotPointwiseError:
            continue  # a carry is read at a place that is not known: it has to lie in memory
        if steps is not None:
            p.keep(attempt)
            return before + steps
    return before + driver_loop(p, loop, block)


def driver_loop(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step]:
    """A loop of the driver. A carry has two buffers that change places after each round, or one
    when it is updated in place."""
    steps = turn_matrices(p, loop, block)
    fixed = unchanged(loop)
    for i, init in fixed.items():
        alias(p, [loop.carries[i]], [init], ())
        if loop.test is not None:
            alias(p, [loop.test_carries[i]], [init], ())
    counting = counters(p, loop)
    moving = [i for i in range(len(loop.carries)) if i not in fixed and i not in counting]
    name = f"body of %{loop.node.id}"
    wanted = [y for k, y in enumerate(loop.stacked) if len(loop.carries) + k in loop.gets]
    placed = in_place(
        p,
        name,
        updated_pairs(loop.carries, loop.next, moving),
        [*[loop.next[i] for i in moving], *wanted],
        loop.body.effects,
        frozenset([loop.carries[i] for i in moving]),
    )
    taken = {i: home for i, home in taken_over(p, loop, block).items() if i in placed.pairs}
    current: dict[int, Buffer] = {}
    following: dict[int, Buffer] = {}
    for i in moving:
        if i in taken:
            current[i] = following[i] = taken[i].buf
        else:
            current[i], following[i] = carry_buffers(p, loop, block, i, i in placed.pairs)
    copied = [(loop.init[i], View(current[i])) for i in moving if i not in taken]
    steps += first_values(p, loop, copied)
    for i in moving:
        p.view[loop.carries[i]] = View(current[i])
        if loop.test is not None:
            p.view[loop.test_carries[i]] = View(current[i])
        if current[i] is not following[i] and keeps_around(loop, i):
            after, home = loop.next[i], View(following[i])
            around = tuple([box_stage(home, b) for b in boxes_around(p, after)])
            steps += [Compute(around)] if around else []
            p.around_stands[after] = home
    targets = [(loop.next[i], View(following[i])) for i in moving]
    for k, y in enumerate(loop.stacked):
        get = loop.gets.get(len(loop.carries) + k)
        if get is not None:
            p.view[get] = block.targets.get(get) or View(p.temporary(get))
            home = p.view[get]
            targets.append((y, View(home.buf, (*home.prefix, loop.at))))
    body = p.block(name, targets, loop.body.effects, placed.homes)
    swaps = [(current[i], following[i]) for i in moving if current[i] is not following[i]]
    test: list[Step] = []
    flag = None
    if loop.test is not None:
        flag = p.temporary(loop.test.outputs[0])
        tested = [(loop.test.outputs[0], View(flag))]
        test = p.block(f"test of %{loop.node.id}", tested, loop.test.effects)
    carried = {
        *current.values(),
        *[v.buf for _, v in targets],
        *[b for s in test for b in s.writes()],
    }
    before, body = taken_out(body, carried, loop.t.attr[0])
    steps += before
    count = loop.t.attr[1]
    steps.append(Repeat(body, swaps, count, loop.t.attr[0], test, flag))
    odd = type(loop.length) is int and loop.length % 2 == 1
    if odd:  # the last values lie in the second buffers: give them their names back
        steps += [Swap(a, b) for a, b in swaps]
    for i, get in loop.gets.items():
        if i in fixed:
            alias(p, [get], [fixed[i]], ())
        elif i in counting:
            p.memo[get, ()] = counting[i]
        elif i < len(loop.carries):
            p.view[get] = View(following[i] if odd else current[i])
    return steps


def keeps_around(loop: LoopParts, i: int) -> bool:
    """Does every round write the same box of a carry, and leave what lies around it? That stands in
    both buffers then, once it has been copied.

    before: loop: v[border] = u[border]; v[box] = f(u); swap u, v
    after:  v[border] = u[border]; loop: v[box] = f(u); swap u, v
    """
    carry, after = loop.carries[i], loop.next[i]
    box = after.op == "dynamic_update_slice" and after.args[0] is carry
    return box and all(s.op == "literal" for s in after.args[2:])


def first_values(p: Planner, loop: LoopParts, targets: list[tuple[Node, View]]) -> list[Step]:
    """Put the first values of the carries in place. The rounds overwrite them: whoever wants such a
    value later must not read it there."""
    attempt = p.attempt()
    steps = attempt.block(f"first values of %{loop.node.id}", targets)
    attempt.memo.clear()
    for n, _ in targets:
        attempt.view.pop(n, None)
    p.keep(attempt)
    return steps


def counters(p: Planner, loop: LoopParts) -> dict[int, Expr]:
    """The integers that every round moves on by the same number: they are known from the number of
    the round. Carry -> its last value."""
    out: dict[int, Expr] = {}
    if loop.length is None:
        return out
    for i, (c, o, init) in enumerate(zip(loop.carries, loop.next, loop.init)):
        if (
            o.op != "add"
            or c.shape
            or c.dtype not in ("i32", "u32", "i64", "u64")
            or init.op != "literal"
        ):
            continue
        step = o.args[1] if o.args[0] is c else o.args[0]
        if c not in o.args or step.op != "literal":
            continue
        first, by = const(int(init.params["value"])), const(int(step.params["value"]))

        def number(t: Expr) -> Expr:
            return cast(ex("add", first, ex("mul", by, t)), c.dtype)

        p.memo[c, ()] = number(loop.t)
        out[i] = number(p.sizes.dim(loop.length))
    return out


def carry_buffers(
    p: Planner, loop: LoopParts, block: CodeBlock, i: int, in_place: bool
) -> tuple[Buffer, Buffer]:
    """The two buffers of a carry. With a known number of rounds the one that is current in the end
    may be the result itself."""
    get = loop.gets.get(i)
    home = block.targets.get(get) if get is not None else None
    result = home.buf if home is not None and not home.prefix else None
    node = loop.carries[i]
    if in_place:
        b = result or p.temporary(node)
        return b, b
    if result is None or type(loop.length) is not int:
        return p.temporary(node), p.temporary(node)
    return (p.temporary(node), result) if loop.length % 2 else (result, p.temporary(node))


def taken_over(p: Planner, loop: LoopParts, block: CodeBlock) -> dict[int, View]:
    """The carries that go on in the memory of what they start from, since that ends here."""
    overs = {i: block.homes.of[get].other for i, get in loop.gets.items()}
    return {
        i: p.view[x]
        for i, x in overs.items()
        if x is not None and i < len(loop.init) and x is loop.init[i] and x in p.view
    }


def emit_cond(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """One branch runs; all write their results to the same buffers, which may be those of operands
    that end here."""
    p.depth += 1
    index, operands = n.args[0], n.args[1:]
    selector = p.in_memory(index, block)
    gets = {m.params["index"]: m for m in block.order if m.op == "get" and m.args[0] is n}
    homes: dict[int, View] = {}
    taken: dict[int, int] = {}
    for i, get in gets.items():
        x = block.homes.of[get].other
        if x is not None and x in p.view:
            homes[i], taken[i] = p.view[x], operands.index(x)
        else:
            homes[i] = block.targets.get(get) or View(p.temporary(get))
    cases = []
    for k, branch in enumerate(n.params["branches"]):
        g = bind(p, branch, "")
        alias(p, g.inputs, operands, ())
        targets = [(g.outputs[i], home) for i, home in homes.items()]
        cases.append(branch_steps(p, f"branch {k} of %{n.id}", g, targets, homes, taken))
    for i, get in gets.items():
        p.view[get] = homes[i]
    return [Switch(selector, cases)]


def branch_steps(
    p: Planner,
    name: str,
    g: Graph,
    targets: list[tuple[Node, View]],
    homes: Mapping[int, View],
    taken: Mapping[int, int],
) -> list[Step]:
    """A branch, the memory of whose operands is that of some results."""
    pairs = {i: (g.inputs[j], g.outputs[i]) for i, j in taken.items()}
    placed = in_place(p, name, pairs, [n for n, _ in targets], g.effects)
    steps: list[Step] = []
    for i, (x, _) in pairs.items():
        del p.alias[x]
        p.view[x] = homes[i]
        if i not in placed.pairs:  # it is read after its update
            p.view[x] = View(p.temporary(x))
            steps.append(Copy(p.view[x].buf, homes[i].buf))
    return steps + p.block(name, targets, g.effects, placed.homes)


def emit_let_size(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """From here on the driver knows a size."""
    name = p.sizes.dim(n.params["size"]).attr[0]
    return [Count(str(name), p.in_memory(n.args[0], block))]


SMALL_LOOPS: Final[tuple[Callable[[Planner, LoopParts, CodeBlock], list[Step] | None], ...]] = (
    lanes_together,
    lanes_loop,
    scalar_loop,
    pointwise_loop,
)
