"""`python -m calque`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from calque.command_line.commands import COMMANDS, main

SOURCE = str(pathlib.Path(__file__).resolve().parents[2] / "src")
PROGRAM = """
import sys, jax, jax.numpy as jnp

def model(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]).sum()

if __name__ == "__main__":
    p = {"w": jnp.ones((9, 8)), "b": 1.0}
    print(jax.__name__, sys.argv[1:], jax.jit(model)(p, jnp.ones((200, 9))))
    sys.exit(5 if "--fail" in sys.argv else 0)
"""


def calque(*arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": SOURCE, "CALQUE_TRACEBACK_FILTERING": "off"}
    done = subprocess.run(
        [sys.executable, "-m", "calque", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **path, **environment},
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    out = capsys.readouterr().out
    assert end.value.code == 0 and out.startswith(f"usage: python -m calque {command}")


def test_the_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"    {command} " in out for command in COMMANDS)
    assert main(["--version"]) == 0 and capsys.readouterr().out[0].isdigit()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "usage"),
        (("explian",), "did you mean `explain`?"),
        (("--nonsense",), "unknown option --nonsense"),
        (("run",), "there is no program to run"),
        (("profile",), "there is no program to profile"),
        (("profile", "no_such_file.py"), "no file 'no_such_file.py'"),
        (("cache", "clear", "x.py"), "takes no program"),
        (("-m", "no_such_module.part"), "there is no module 'no_such_module.part'"),
        (("profile", "-m", "..."), "there is no module '...'"),
    ],
)
def test_wrong_calls_end_with_2(arguments, text, capsys):
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_options_of_commands_are_checked(capsys):
    with pytest.raises(SystemExit) as end:
        main(["info", "--no-such-option"])
    assert end.value.code == 2 and "--no-such-option" in capsys.readouterr().err


def test_an_action_of_the_cache_that_is_none(capsys):
    with pytest.raises(SystemExit) as end:
        main(["cache", "claer"])
    said = capsys.readouterr().err
    assert end.value.code == 2 and "claer" in said and "clear" in said


def test_profile_of_a_program(program, tmp_path):
    trace = tmp_path / "trace.json"
    done = calque("profile", "--trace", str(trace), program, "--fail", "x", code=5)
    assert done.stdout.startswith("calque ['--fail', 'x']")
    assert "matmul" in done.stderr and "program.py:5" in done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    assert any(e["name"].startswith("matmul") for e in events)


def test_profile_and_explain_of_a_function(program, tmp_path):
    types = '{"w": f32[9,8], "b": f32}', "f32[200,9]"
    done = calque("profile", f"{program}:model", *types)
    assert "a call" in done.stdout and "program.py:5" in done.stdout
    done = calque("explain", f"{program}:model", *types)
    assert "x: f32[200,9]" in done.stdout and "\x1b" not in done.stdout
    page = tmp_path / "page.html"
    assert calque("explain", "--html", str(page), f"{program}:model", *types).stdout.strip() == str(
        page
    )
    assert page.read_text().startswith("<!doctype html>")
    done = calque("show", "-o", str(page), f"{program}:model", *types)
    assert done.stdout.strip() == str(page) and "<svg" in page.read_text()
    assert "has no 'modl'; there is 'model'" in calque("explain", f"{program}:modl", code=2).stderr


def test_commands_run_programs_with_their_own_options(program):
    assert calque("run", program, "--trace", "x").stdout.startswith("calque ['--trace', 'x']")
    assert calque("run", "-c", "print(3)").stdout == "3\n"
    done = calque("profile", "-c", "import jax; jax.jit(jax.numpy.sin)(1.0)")
    assert "sin" in done.stderr
