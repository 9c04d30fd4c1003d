"""Which lines of the user's source became which loops."""

import functools

import calque as jax
import calque.numpy as jnp
from calque.explaining import links
from calque.explaining.links import Links, by_kernel, code_of, lines_of, loop_lines


def two_steps(x, w):
    y = jnp.tanh(x @ w)
    z = jnp.sin(y).sum(0)
    return z * 2, jnp.sort(y.ravel())


def test_loops_and_machine_code_are_linked_with_the_source():
    r = jax.explain(two_steps, jnp.ones((3000, 20)), jnp.ones((20, 100)))
    first = two_steps.__code__.co_firstlineno
    heads = [lines for lines, row in r.loop_lines if row.startswith("kernel")]
    assert {f"0:{first + 1}"} in heads and any(f"0:{first + 2}" in lines for lines in heads)
    known = {f"0:{k}" for k in range(first, first + 4)}
    assert all(lines <= known for lines, _ in r.loop_lines)
    assert [lines for lines, _ in r.assembly_parts] == heads
    stored = [lines for lines, row in r.loop_lines if "tanh(" in row and " = " in row]
    assert stored and all(f"0:{first + 1}" in lines for lines in stored)


LOOPS = """kernel first:
  for d0 < 3:
    t1[d0] = sin(a0[d0])
    out0[d0] = t1[d0] + 2
kernel second:
  s.t2 = t2 + t1[0]
driver:
  call first"""
ARRAYS = {"t1": {"0:4"}, "out0": {"0:5"}, "t2": {"0:7"}}


def test_lines_of_loops_are_those_of_what_they_store():
    rows = loop_lines(LOOPS, ARRAYS)
    assert [lines for lines, _ in rows] == [
        {"0:4", "0:5"},
        set(),
        {"0:4"},
        {"0:5"},
        {"0:7"},
        {"0:7"},
        set(),
        set(),
    ]
    assert "\n".join(row for _, row in rows) == LOOPS
    assert (
        lines_of(["t1", "unknown", "t2"], ARRAYS) == {"0:4", "0:7"}
        and lines_of([], ARRAYS) == set()
    )


def test_machine_code_has_the_lines_of_its_kernel():
    text = "kernel second:\n  mov\nkernel first:\n  add\n"
    assert by_kernel(text, loop_lines(LOOPS, ARRAYS)) == [
        ({"0:7"}, "kernel second:\n  mov\n"),
        ({"0:4", "0:5"}, "kernel first:\n  add\n"),
    ]
    assert by_kernel("nothing", []) == []


def helper(x):
    return jnp.sin(x)


def outer(x):
    y = helper(x)
    return (lambda v: v * 2)(y)


def linked(fun, *args):
    return Links(fun, jax.make_jaxpr(fun)(*args).jaxpr)


def test_every_function_that_was_traced_is_shown_once():
    found = linked(outer, 1.0)
    assert [s.name for s in found.functions] == ["outer", "helper"]
    assert found.functions[0].lines[0] == "def outer(x):"
    line = helper.__code__.co_firstlineno + 1
    assert found.mark(__file__, line) == {f"0:{line}"} and found.mark("elsewhere.py", 3) == set()


def test_functions_in_programs_inside_are_found():
    def body(c, x):
        return helper(c), x

    def scanned(x):
        return jax.lax.scan(body, 1.0, x)

    assert {s.name for s in linked(scanned, jnp.ones(3)).functions} == {"scanned", "body", "helper"}


def test_wrappers_are_looked_through():
    class Model:
        def __call__(self, x):
            return x

    assert code_of(functools.partial(outer)) is outer.__code__
    assert code_of(jax.jit(outer)) is outer.__code__
    assert code_of(Model()) is Model.__call__.__code__
    assert code_of(jnp.sin) is None and code_of(3) is None


def test_too_many_functions_are_counted(monkeypatch):
    monkeypatch.setattr(links, "MOST_SHOWN", 1)
    found = linked(outer, 1.0)
    assert len(found.functions) == 1 and found.left_out == 1


def test_functions_without_source():
    space = {"jnp": jnp}
    exec("def made(x):\n    return jnp.sin(x)", space)
    assert linked(space["made"], 1.0).functions == []
