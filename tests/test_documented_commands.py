"""The commands that the documentation prints run as printed. Each stands in one of two tables:
what it prints when it is run here, or why it is not run."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
]
PAGES = sorted(p for p in PAGES if p.name != "CHANGELOG.md")  # which tells of the past
if not PAGES or shutil.which("bash") is None:
    pytest.skip("no documentation beside the tests, or no bash", allow_module_level=True)

_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^ {4}((?:python|make|pip) .*?)(?: {2,}.*)?$", re.MULTILINE)
_INLINE = re.compile(r"`((?:python|make|pip|calque) [^`\n]+)`")
_FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)

# what the programs named in the documentation are, in the folder where the commands run
FILES = {
    "script.py": "import sys\nimport jax, jax.numpy as jnp\n"
    "total = jax.jit(lambda x: jnp.sin(x).sum())(jnp.zeros(2000))\n"
    "print('sum', total, jax.__name__, sys.argv[1:])\n",
    "train.py": "import argparse, jax\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--epochs', type=int)\n"
    "print('epochs', parser.parse_args().epochs, jax.__name__)\n",
    "model.py": "import jax.numpy as jnp\ndef loss(x, params):\n"
    "    return jnp.mean(jnp.tanh(x @ params['w']) ** 2)\n",
    "test_model.py": "import jax\ndef test_jax():\n    assert jax.__name__ == 'calque'\n",
}

# command -> what it prints. Commands of the checkout run there, all others beside FILES.
RUN = {
    "python -m calque --help": "usage:",
    "python -m calque cache": "MiB",
    "python -m calque cache clear": "",
    "python -m calque doctor": "",
    "python -m calque info": "calque",
    "python -m calque script.py": "sum 0.0 calque []",
    "python -m calque script.py arguments ...": "sum 0.0 calque ['arguments', '...']",
    "python -m calque train.py --epochs 3": "epochs 3 calque",
    "python -m calque -m pytest -p calque.compat.pytest_plugin": "1 passed",
    "python -m calque profile script.py": "sum 0.0 calque []",
    "python -m calque profile --trace t.json script.py": "t.json",
    "python -m calque profile --perf-map script.py": "sum 0.0 calque []",
    "python -m calque profile model.py:loss 'f32[128,784]' '{\"w\": f32[784,10]}'": "model.py:3",
    "python -m calque show model.py:loss 'f32[128,784]' '{\"w\": f32[784,10]}' -o loss.html": (
        "loss.html"
    ),
    "python -m tests.test_help calque.numpy.sum": "",
    "python tools/ptx_spike.py": ".visible .entry",
}
IN_CHECKOUT = {"python -m tests.test_help calque.numpy.sum", "python tools/ptx_spike.py"}

NEEDS_INDEX = "makes an environment with packages of an index; .ci/run does the same"
HOURS = "runs for minutes to hours"
FIGURES = "takes figures for a person, for minutes, on an idle machine"
NOT_RUN = {
    "python tools/gpu_proof.py": "needs a GPU; tests/test_gpu_proof.py runs it on a CPU",
    "make demo": NEEDS_INDEX,
    "make test": NEEDS_INDEX,
    "make check": NEEDS_INDEX,
    "make docs": NEEDS_INDEX,
    "make install-check": NEEDS_INDEX,
    "make soak": HOURS,
    "make xla": NEEDS_INDEX,
    "python -m tests.fuzz": HOURS,
    "python -m tests.fuzz --chains": HOURS,
    "make conformance": "needs the kit, which is no part of calque",
    "CONFORMANCE_KIT=dir make conformance": "needs the kit, which is no part of calque",
    "pip install .": "needs an index",
    "pip install calque[xla]": "needs an index",
    "pip install 'calque[xla]'": "needs an index",
    "pip install calque[compiler]": "is planned",
    "python tools/check_release.py v0.2.0": "asks for a tag that is made with the release",
    "python -m calque cache warm": "compiles for a minute where no code is cached",
    "python -m tests.long_compositions --programs 2000 --seed 0": HOURS,
    "python tools/measure_accuracy.py --write": FIGURES,
    "python tools/write_vocabulary.py": "rewrites files of the source",
    "python run_clients.py --more --impl calque --level own --clients chex --seconds 300": (
        "is a part of the kit"
    ),
    "python benchmarks/report.py": FIGURES,
    "python benchmarks/report.py --quick": FIGURES,
    "python benchmarks/eager.py": FIGURES,
    "python benchmarks/kernels.py": FIGURES,
    "python benchmarks/library.py": FIGURES,
    "python benchmarks/latency.py": FIGURES,
    "python benchmarks/control.py": FIGURES,
    "python benchmarks/tracing.py": FIGURES,
    "python benchmarks/symbolic.py": FIGURES,
    "python benchmarks/checks.py": FIGURES,
}
# what sentences call a command, without being one
NAMES = {"", "pip install", "python -m calque"}


def commands(text: str) -> set[str]:
    """Every command of a page: lines of blocks of shell, and code in sentences."""
    found = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    prose = _FENCED.sub("", text)
    found += _INLINE.findall(prose) + _INDENTED.findall(prose)
    return {without_comment(line) for line in found} - NAMES


def without_comment(line: str) -> str:
    return re.sub(r"(?:^| +)#.*$", "", line).strip()


def printed() -> set[str]:
    return {c for page in PAGES for c in commands(page.read_text(encoding="utf-8"))}


def test_commands_are_found():
    text = "```sh\nmake a   # why\n\n# only this\nb --c '#'\n```\nSay `python x.py` or `make`.\n"
    assert commands(text) == {"make a", "b --c '#'", "python x.py"}


def test_every_command_is_in_one_table():
    assert not RUN.keys() & NOT_RUN.keys()
    found = printed()
    assert found - RUN.keys() - NOT_RUN.keys() == set()
    assert RUN.keys() | NOT_RUN.keys() == found, "the documentation has lost some"


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def environment(folder):
    """One in which `python` is this one, and a cache that may be cleared."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": source.rstrip(os.pathsep)}


@pytest.mark.parametrize("command", sorted(RUN))
def test_a_command_runs(command, folder):
    variables = environment(folder)
    if command.endswith("cache clear"):
        variables["CALQUE_CACHE_DIR"] = str(folder / "cache")
    where = ROOT if command in IN_CHECKOUT else folder
    got = subprocess.run(
        ["bash", "-c", command], cwd=where, env=variables, capture_output=True, text=True
    )
    assert got.returncode == 0, got.stderr
    assert RUN[command] in got.stdout + got.stderr


TARGETS = sorted(c for c in NOT_RUN if c.startswith("make "))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("command", TARGETS)
def test_a_target_that_is_not_run_exists(command):
    got = subprocess.run([*shlex.split(command), "-n"], cwd=ROOT, capture_output=True, text=True)
    assert got.returncode == 0 and got.stdout, got.stderr


@pytest.mark.parametrize("command", sorted(c for c in NOT_RUN if c.startswith("python ")))
def test_a_program_that_is_not_run_exists(command):
    words = shlex.split(command)[1:]
    if words[0] == "run_clients.py":
        return
    name = words[1].replace(".", "/") if words[0] == "-m" else words[0].removesuffix(".py")
    places = [ROOT / f"{name}.py", ROOT / name, ROOT / "src" / name]
    assert any(place.exists() for place in places), command
