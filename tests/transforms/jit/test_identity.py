"""Functions that are the same share their programs."""

import gc
import subprocess
import sys
import weakref

import calque
from calque.transforms.jit.identity import cache_of


def test_the_interpreter_ends_in_silence():
    code = """
import calque, sys
class Model:
    w = 2.0
model = Model()
sys.modules["kept"] = model  # dies when modules are cleared
f = calque.jit(lambda x: x * model.w)
f(3.0)
g = calque.grad(f)
g(1.0)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr == "" and out.stdout == ""


def test_what_no_other_function_can_find_is_not_kept():
    """A function of the library, made for one function of the user, is known by its address."""

    class Captured:
        pass

    kept = Captured()
    alive = weakref.ref(kept)

    def f(x, kept=kept):
        return x * 2

    assert calque.pmap(f)(calque.numpy.ones(1)).tolist() == [2]
    del f, kept
    gc.collect()
    assert alive() is None


def test_what_assigns_outside_of_itself_is_no_other_function():
    """Functions made anew share their programs, unless a trace of theirs leaves something."""
    traces = 0

    def counting():
        def f(x):
            nonlocal traces
            traces += 1
            return x + 1

        return f

    def counting_within():
        def f(x):
            def note():
                nonlocal traces
                traces += 1

            note()
            return x + 1

        return f

    for make in (counting, counting_within):
        for _ in range(2):
            traces = 0  # what f captured is the same again
            calque.jit(make())(1.0)
            assert traces == 1


def test_what_assigns_its_own_variables_alone_is_shared():
    def make():
        def f(x):
            count = 0

            def step():
                nonlocal count
                count += 1

            step()
            return x + count

        return f

    first, second = calque.jit(make()), calque.jit(make())
    assert first(1.0) == second(1.0) == 2
    assert cache_of(make(), "options") is cache_of(make(), "options")
