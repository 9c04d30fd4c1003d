"""Which lines of the user's source became which loops."""

from types import SimpleNamespace

import pytest

import calque as jax
import calque.numpy as jnp
from calque.explaining.links import Links, by_kernel, lines_of, loop_lines


def two_steps(x, w):
    y = jnp.tanh(x @ w)
    z = jnp.sin(y).sum(0)
    return z * 2, jnp.sort(y.ravel())


def test_loops_and_machine_code_are_linked_with_the_source():
    r = jax.explain(two_steps, jnp.ones((3000, 20)), jnp.ones((20, 100)))
    first = two_steps.__code__.co_firstlineno
    heads = [lines for lines, row in r.loop_lines if row.startswith("kernel")]
    assert {first + 1} in heads and any(first + 2 in lines for lines in heads)
    assert all(lines <= set(range(first, first + 4)) for lines, _ in r.loop_lines)
    assert [lines for lines, _ in r.assembly_parts] == heads
    stored = [lines for lines, row in r.loop_lines if "tanh(" in row and " = " in row]
    assert stored and all(first + 1 in lines for lines in stored)


LOOPS = """kernel first:
  for d0 < 3:
    t1[d0] = sin(a0[d0])
    out0[d0] = t1[d0] + 2
kernel second:
  s.t2 = t2 + t1[0]
driver:
  call first"""
ARRAYS = {"t1": {4}, "out0": {5}, "t2": {7}}


def test_lines_of_loops_are_those_of_what_they_store():
    rows = loop_lines(LOOPS, ARRAYS)
    assert [lines for lines, _ in rows] == [{4, 5}, set(), {4}, {5}, {7}, {7}, set(), set()]
    assert "\n".join(row for _, row in rows) == LOOPS
    assert lines_of(["t1", "unknown", "t2"], ARRAYS) == {4, 7} and lines_of([], ARRAYS) == set()


def test_machine_code_has_the_lines_of_its_kernel():
    text = "kernel second:\n  mov\nkernel first:\n  add\n"
    assert by_kernel(text, loop_lines(LOOPS, ARRAYS)) == [
        ({7}, "kernel second:\n  mov\n"),
        ({4, 5}, "kernel first:\n  add\n"),
    ]
    assert by_kernel("nothing", []) == []


@pytest.mark.parametrize("file, want", [(__file__, {3}), ("/elsewhere.py", set())])
def test_only_lines_of_the_functions_own_file(file, want):
    source = SimpleNamespace(file=file, line=3)
    assert Links(two_steps).of(source) == want and Links(two_steps).of(None) == set()
    assert Links(len).of(source) == {3}  # of a function without a file: all of them
