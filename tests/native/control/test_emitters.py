"""Who makes steps of what is no stage is imported when a program has it."""

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import calque

def loaded(*names):
    return [n for n in names if f"calque.native.{n}" in sys.modules]

ALL = "library.matmul", "library.convolution", "library.sorting", "control.forms"
x = np.ones((30, 30), "float32")
calque.jit(lambda x: (x * 2).sum(0)).lower(x).compile()
assert "calque.native.backend" in sys.modules and loaded(*ALL) == [], loaded(*ALL)
calque.jit(lambda x: x @ x).lower(x).compile()
assert loaded(*ALL) == ["library.matmul"], loaded(*ALL)
calque.jit(lambda x: calque.lax.scan(lambda c, y: (c @ x, y), x, x)).lower(x).compile()
assert "control.forms" in loaded(*ALL)
"""


def test_what_a_program_does_not_have_is_not_imported() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
