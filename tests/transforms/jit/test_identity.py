"""Functions that are the same share their programs."""

import gc
import subprocess
import sys
import weakref

import calque


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
