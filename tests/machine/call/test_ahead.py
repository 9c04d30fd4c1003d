"""What is compiled and imported together with the package, on an empty cache and on another."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import calque
from calque.machine.call import operators, run, types
from calque.machine.code import llvm
from calque.machine.lang import unit
for u in (operators.unit, run.unit, types.unit):
    assert u._addresses is not None, u.name
assert not unit._under_way
print(llvm.stats.compiled > 0, "calque.native.plan.blocks" in sys.modules)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a first process and a second one print."""
    env = dict(os.environ, CALQUE_CACHE_DIR=str(tmp_path_factory.mktemp("cache")))
    out = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, check=False
        )
        assert done.returncode == 0, done.stderr
        out.append(done.stdout.strip())
    return out


def test_the_planner_is_imported_while_the_call_path_is_compiled(printed: list[str]) -> None:
    """Where images of the runtime lie in the package nothing is compiled, but every program will
    be."""
    assert printed[0] in ("True True", "False True")


def test_a_process_that_finds_its_code_imports_no_planner(printed: list[str]) -> None:
    assert printed[1] == "False False"
