"""The call by which loops ask."""

import os
import subprocess
import sys

from calque.machine.driver.interpreter import POLL
from calque.native.loops import asking


def test_the_interpreter_answers_by_that_name() -> None:
    assert asking.ASK == POLL
    assert f"@{POLL}(" in asking.DECLARATION


def test_a_program_that_is_found_on_disk_needs_no_loop_trees(tmp_path) -> None:
    """Nor expressions: a second process only maps what the first has written."""
    program = (
        "import sys, calque, calque.numpy as jnp\n"
        "f = calque.jit(lambda x: jnp.tanh(x @ x).sum(0) * jnp.exp(x) + jnp.sin(x) - jnp.cos(x))\n"
        "f(jnp.ones((40, 40)))\n"
        "print(any(m.startswith('calque.native.loops.tree') for m in sys.modules))\n"
    )
    env = {**os.environ, "CALQUE_CACHE_DIR": str(tmp_path), "CALQUE_VERIFY_KERNELS": "0"}
    seen = [
        subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert seen == ["True", "False"]
