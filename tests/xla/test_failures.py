"""What becomes of errors of XLA's runtime; forks of a process that runs it."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.config import config
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib


@pytest.fixture
def on_xla() -> Iterator[None]:
    with config.override("calque_platforms", "xla_cpu"):
        yield


def test_errors_of_memory_say_what_to_do_about_it(on_xla: None) -> None:
    """Where the call meets them, and where its result is awaited or looked at. Two results are more
    than addresses reach, so that no machine has them, and nothing of them is touched."""
    advice = r"RESOURCE_EXHAUSTED.*memory_analysis\(\).*donate_argnums"

    def flat(a: Any) -> Any:
        return jnp.ones(1 << 44) * a, jnp.ones(1 << 44) + a

    def outer(a: Any) -> Any:
        b = jnp.arange(1 << 22) * a
        return b[:, None] * b, b[:, None] + b

    looks = (jax.block_until_ready, lambda ys: [np.asarray(y) for y in ys], lambda ys: ys[1] + 1)
    for f in (flat, outer):
        for look in looks:
            with pytest.raises(RuntimeError, match=advice) as told:
                look(jax.jit(f)(2.0))
            assert isinstance(told.value, MemoryError)  # as calque's own engine raises
            assert told.value.__suppress_context__ or told.value.__context__ is None


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("engine", ["cpu", "xla_cpu"])
def test_forks_of_a_process_that_runs_xla_are_warned_of(engine: str) -> None:
    code = """
        import os, warnings, calque
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for program in (None, calque.jit(lambda x: x + 1)):
                if program is not None: program(1.0).block_until_ready()
                pid = os.fork()
                if pid == 0: os._exit(0)
                os.waitpid(pid, 0)
        print([str(w.message)[:22] for w in told if w.category is RuntimeWarning])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "CALQUE_PLATFORMS": engine},
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = ["this process runs XLA,"] if engine == "xla_cpu" else []
    assert done.stdout.strip() == str(told), done.stderr[-2000:]


def test_an_array_given_away_twice_is_to_be_copied(on_xla: None) -> None:
    x = jnp.ones(9)
    with pytest.raises(RuntimeError, match=r"donate the same buffer twice.*pass a copy of it"):
        jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))(x, x)


def test_steps_of_programs_of_xla_are_not_drawn() -> None:
    with pytest.raises(
        NotImplementedError, match=r"XLA compiled _double: jax\.explain.*backend='cpu'"
    ):
        jax.show(jax.jit(_double, backend="xla_cpu"), jnp.ones(3))


def _double(x: Any) -> Any:
    return x * 2
