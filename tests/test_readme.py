"""What README.md and README.zh.md tell their readers to type does what they say. (Examples with
prompts are run by test_documentation.py, `make` itself by the machine that checks changes.)"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "README.zh.md")
SCRIPT = """
import sys, jax
assert jax.jit.__module__.startswith("calque"), jax.jit.__module__
print(sys.argv[1:])
"""
TEST = """
import jax
def test_it():
    assert jax.grad(lambda x: x**2)(3.0) == 6 and jax.jit.__module__.startswith("calque")
"""


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def run(command, directory):
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("page", (*PAGES, "CONTRIBUTING.md"))
def test_targets_of_make_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    asked = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text(), re.M))
    assert {"test"} <= asked <= targets
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    assert set(phony) == targets


def commands(page):
    """The lines that start calque, without their comments."""
    lines = "".join(blocks(page, "sh")).splitlines()
    found = [shlex.split(line, comments=True) for line in lines]
    return [command for command in found if command[:3] == ["python", "-m", "calque"]]


def test_both_pages_say_the_same():
    assert commands(PAGES[0]) == commands(PAGES[1]) and len(commands(PAGES[0])) == 2
    for language in ("python",):
        ours, theirs = (blocks(page, language) for page in PAGES)
        assert [re.sub("#.*", "", b) for b in ours] == [re.sub("#.*", "", b) for b in theirs]


@pytest.mark.parametrize("number", range(2))
def test_commands_run_as_written(number, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "test_it.py").write_text(TEST)
    command = commands(PAGES[0])[number]
    done = run([sys.executable, *command[1:]], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = "1 passed" if "pytest" in command else str(command[4:])
    assert said in done.stdout


def test_blocks_run_as_written(tmp_path):
    code = [block for block in blocks(PAGES[0], "python") if ">>>" not in block]
    assert len(code) == 2
    check = """
w, x, y = jnp.ones((3, 2)), jnp.ones((4, 3)), jnp.zeros((4, 2))
assert loss(step(w, x, y), x, y) < loss(w, x, y)
"""
    served = "import jax.numpy\nassert jax.numpy.sum.__module__.startswith('calque')\n"
    done = run([sys.executable, "-c", code[0] + check + code[1] + served], tmp_path)
    assert done.returncode == 0, done.stderr
