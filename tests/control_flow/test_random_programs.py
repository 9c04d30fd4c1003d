"""Random programs of branches, loops and jumps over integers: converted and compiled they give what
Python gives."""

import importlib.util
import random

import pytest

import calque as jax

PROGRAMS, DEPTH = 16, 3


class Writer:
    """Writes one function of an integer, whose variables are all set at its beginning."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counters = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def value(self):
        return self.pick("a", "b", "c", "x", "d[0]", "d[1]")

    def number(self):
        v, w = self.value(), self.value()
        return self.pick(
            v,
            f"{v} + {w}",
            f"({v} - {w}) % 7",
            f"{v} * 2 % 11",
            f"({v} if {self.condition()} else {w})",
            "3",
            "smaller(a, x)",
        )

    def condition(self):
        v, w = self.value(), self.pick("a", "b", "x", "2", "4")
        return self.pick(
            f"{v} < {w}", f"{v} == {w}", f"{v} >= {w}", f"0 < {v} <= {w}", f"{v} % 2 == 0",
            f"not ({v} > 2 and {w} < 3)", f"({v} < {w} or {v} == 3)",
        )  # fmt: skip

    def block(self, depth, in_loop):
        lines = [
            s for _ in range(self.random.randint(1, 3)) for s in self.statement(depth, in_loop)
        ]
        return ["    " + s for s in lines]

    def statement(self, depth, in_loop):
        kind = self.random.random()
        if depth == 0 or kind < 0.35:
            return [
                f"{self.pick('a', 'b', 'c', 'd[0]')} {self.pick('=', '=', '+=')} {self.number()}"
            ]
        if kind < 0.5:
            jump = (
                self.pick("break", "continue", f"return {self.number()}")
                if in_loop
                else f"return {self.number()}"
            )
            return [f"if {self.condition()}:", f"    {jump}"]
        if kind < 0.75:
            lines = [f"if {self.condition()}:", *self.block(depth - 1, in_loop)]
            if self.pick(True, False):
                lines += [f"elif {self.condition()}:", *self.block(depth - 1, in_loop)]
            return (
                [*lines, "else:", *self.block(depth - 1, in_loop)]
                if self.pick(True, False)
                else lines
            )
        return self.loop(depth, in_loop)

    def loop(self, depth, in_loop):
        self.counters += 1
        i = f"i{self.counters}"
        if self.pick(True, False):
            lines = [
                f"{i} = 0",
                f"while {i} < {self.pick('x', '3')} and {self.condition()}:",
                f"    {i} += 1",
            ]
        else:
            lines = [
                f"for {i} in {self.pick('range(x)', 'range(x, 0, -2)', 'range(3)', '[2, 0, 1]')}:"
            ]
        lines += self.block(depth - 1, True)
        return (
            [*lines, "else:", *self.block(depth - 1, in_loop)]
            if self.pick(True, False, False)
            else lines
        )

    def function(self, name):
        body = [s for _ in range(3) for s in self.statement(DEPTH, False)]
        lines = [
            "a, b, c, d = 1, x, 2, [0, x]",
            *body,
            "return (a + 10 * b + 100 * c + d[0]) % 1009",
        ]
        return "\n".join([f"def {name}(x):", *["    " + s for s in lines], ""])


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "random_programs.py"
    smaller = "def smaller(p, q):\n    return p if p < q else q\n"
    path.write_text(
        "\n".join([smaller, *[Writer(seed).function(f"f{seed}") for seed in range(PROGRAMS)]])
    )
    spec = importlib.util.spec_from_file_location("random_programs", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(module, seed):
    f = getattr(module, f"f{seed}")
    g = jax.jit(f, control_flow="convert")
    for x in (0, 1, 2, 3, 5, 8):
        assert jax.convert(f)(x) == f(x)
        assert int(g(x)) == f(x)
