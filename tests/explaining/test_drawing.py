"""Programs as drawings."""

import xml.etree.ElementTree as xml

import calque as jax
import calque.numpy as jnp
from calque.explaining.drawing import clipped, draw
from calque.profiling.steps import described


def drawn(f, *args, names=()):
    e = jax.jit(f).lower(*args).compile()._executable
    planned = getattr(e, "planned", e)
    return draw(
        planned, described(e).steps, {("call", 0): "7 us"}, names, lambda s: {f"0:{s.line}"}
    )


def texts(drawing):
    return ["".join(t.itertext()) for t in xml.fromstring(drawing.svg()).iter("text")]


def test_arguments_steps_and_results():
    def f(x, w):
        return jnp.tanh(x @ w), jnp.sort(x.ravel())

    d = drawn(f, jnp.ones((40, 30)), jnp.ones((30, 20)), names=["x", "w"])
    shown = texts(d)
    for words in ("x", "f32[40,30]", "w", "matmul tanh", "sort", "result 0", "result 1", "7 us"):
        assert words in shown
    kinds = [i.kind for i in d.items]
    assert kinds[:2] == ["given", "given"] and kinds[-2:] == ["result", "result"]
    ends = {(d.items[e.start].lines[0], d.items[e.end].lines[0]) for e in d.edges}
    assert ("matmul tanh", "result 0") in ends and any(b == "result 1" for _, b in ends)
    line = f.__code__.co_firstlineno + 1
    assert f'data-line="0:{line}"' in d.svg()


def test_loops_stand_around_their_steps():
    def f(x):
        return jax.lax.scan(lambda c, row: (jnp.sort(c) + row, c.sum()), x[0], x)[1]

    d = drawn(f, jnp.ones((300, 64)))
    (block,) = [i for i in d.items if i.kind == "block"]
    assert block.lines == ["repeat 300 times"]
    (part,) = block.parts
    assert any("sort" in i.lines[0] for i in part.items)
    box = d.boxes[d.items.index(block)]
    assert box.width >= part.width and box.height >= part.height


def test_branches_stand_beside_each_other():
    def f(i, x):
        return jax.lax.switch(i, [jnp.sort, lambda x: jnp.cumsum(x), lambda x: -jnp.sort(-x)], x)

    d = drawn(f, 1, jnp.ones(100))
    (block,) = [i for i in d.items if i.kind == "block"]
    assert block.lines[0].startswith("one of 3") and len(block.parts) == 3


def test_every_step_has_a_box_of_its_own():
    def f(x):
        y = jax.lax.fori_loop(0, 9, lambda i, x: jnp.sort(x) * 0.5, x)
        return jax.lax.cond(y[0] > 0, jnp.sort, jnp.cumsum, y)

    d = drawn(f, jnp.ones(100))

    def keys(drawing):
        for i in drawing.items:
            yield from [i.key] if i.key else []
            for p in i.parts:
                yield from keys(p)

    found = list(keys(d))
    e = jax.jit(f).lower(jnp.ones(100)).compile()._executable
    assert sorted(found) == sorted(described(e).steps) and len(set(found)) == len(found)


def test_arguments_that_nobody_reads_are_left_out():
    d = drawn(lambda x, y: x + 1, jnp.ones(3), jnp.ones(4), names=["x", "y"])
    assert [i.lines[0] for i in d.items if i.kind == "given"] == ["x"]


def test_long_lines_are_cut():
    assert clipped("a" * 100).endswith("…") and len(clipped("a" * 100)) < 50
    d = drawn(lambda x: sum(jnp.sin(x * k) for k in range(20)), jnp.ones(1000))
    assert any("more" in t for t in texts(d))


def test_many_arguments_are_one_box():
    d = drawn(lambda xs: sum(xs), [jnp.ones(200 + k)[:7] for k in range(60)])
    given = [i for i in d.items if i.kind == "given"]
    assert len(given) == 24 and given[-1].lines == ["37 more arguments"]
