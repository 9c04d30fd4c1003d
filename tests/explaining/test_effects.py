"""Side effects that happen while a function is traced, found in its bytecode."""

import functools
import sys

import numpy as np

import calque.numpy as jnp
from calque.explaining.effects import side_effects

SEEN, TABLE = [], {}
COUNT = 0


def said(f):
    return [e.what for e in side_effects(f)]


def test_prints_and_files():
    def f(x):
        print(x)
        open("nowhere")  # noqa: SIM115
        return x

    assert said(f) == ["print()", "open()"]
    first = f.__code__.co_firstlineno
    assert [e.line for e in side_effects(f)] == [first + 1, first + 2]
    assert str(side_effects(f)[0]) == f"print() (line {first + 1})"


def test_what_lives_outside():
    counted = []

    def f(x):
        global COUNT
        COUNT = 1
        SEEN.append(x)
        SEEN.reverse()
        sys.stdout.write("x")
        counted.append(x)
        TABLE["k"] = x
        return x

    text = " ".join(said(f))
    assert "the global COUNT is assigned" in text
    assert "SEEN.reverse()" in text and "write()" in text
    assert "SEEN.append()" in text and "counted.append()" in text and "TABLE" in text


def test_variables_of_enclosing_functions():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x

    assert said(f) == ["the variable n of an enclosing function is assigned"] and n == 0


def test_what_is_its_own_is_no_side_effect():
    def f(x):
        own = []
        own.append(x)
        table = {"a": 1}
        table["b"] = 2
        return jnp.sin(x) + len(own)

    assert said(f) == []


def test_wrappers_are_looked_through():
    def f(x, k):
        print(k)
        return x

    assert said(functools.partial(f, k=1)) == ["print()"]

    class Model:
        def method(self, x):
            print(x)

    assert said(Model().method) == ["print()"]
    assert said(np.sin) == [] and said(jnp.sin) == []


def test_what_a_key_is_an_item_of_is_not_changed():
    rows = [1, 2]

    def f(x):
        own = {}
        own[rows[0]] = x
        own[rows[0] + 1] = x
        rows[x] += 1
        return own

    assert said(f) == ["an item of rows is assigned"]
