"""Functions that are the same share their programs."""

import subprocess
import sys


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
