"""`python -m calque`: scripts, modules and code with `import jax` served by calque."""

import os

import pytest

from calque.compat import running
from tests.compat.shared import SOURCE, run


def test_a_script_with_arguments(tmp_path):
    script = tmp_path / "program.py"
    (tmp_path / "beside.py").write_text("VALUE = 3")
    script.write_text(
        "import sys, jax, beside\nprint(__name__, sys.argv[1:], jax.numpy.ones(2).tolist(),"
        " beside.VALUE, sys.argv[0] == __file__)\nsys.exit(7)"
    )
    out = run("-m", "calque", str(script), "-a", "b", code=7)
    assert out == "__main__ ['-a', 'b'] [1.0, 1.0] 3 True"


def test_a_module_and_code(tmp_path):
    (tmp_path / "tool.py").write_text("import sys, jax\nprint(jax.__name__, sys.argv[1:])")
    python = {"PYTHONPATH": f"{SOURCE}{os.pathsep}{tmp_path}"}
    assert run("-m", "calque", "-m", "tool", "x", **python) == "calque ['x']"
    code = "import jax, sys; print(jax.__name__, sys.argv)"
    assert run("-m", "calque", "-c", code, "y") == "calque ['-c', 'y']"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ((), 2, "usage"),
        (("--help",), 0, "usage"),
        (("-m",), 2, "needs an argument"),
        (("--nonsense",), 2, "unknown option --nonsense"),
        (("no_such_file.py",), 2, "no file 'no_such_file.py'"),
    ],
)
def test_calls_that_are_not_complete(arguments, status, text):
    assert text in run("-m", "calque", *arguments, code=status)


def test_an_error_of_the_program_is_its_own(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import jax\nraise KeyError('mine')")
    out = run("-m", "calque", str(script), code=1)
    assert out.endswith("KeyError: 'mine'") and str(script) in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-m"], "-m needs an argument"),
        (["-c"], "-c needs an argument"),
        (["-x"], "unknown option -x"),
        (["no_such_file.py"], "there is no file 'no_such_file.py'"),
        ([__file__], ""),
        (["-m", "json"], ""),
        (["-c", "3"], ""),
    ],
)
def test_problems(arguments, problem):
    assert running.problem_of(arguments) == problem
