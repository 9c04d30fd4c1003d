"""Options, progress and figures of the examples."""

import importlib.util
import io
import pathlib
import sys

import pytest

PATH = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "terminal.py"


@pytest.fixture
def terminal():
    spec = importlib.util.spec_from_file_location("terminal_of_examples", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_one_line_is_redrawn_on_a_terminal(terminal, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    done = []
    for step in (bar := terminal.Progress(4, "counting")):
        bar.note = f"at {step}"
        done.append(step)
    assert done == [0, 1, 2, 3]
    frames = screen.getvalue().split("\r")[1:]
    assert len(frames) == 4 and frames[0].startswith("counting [#######.......")
    assert "4/4 at 3" in frames[-1] and screen.getvalue().count("\n") == 1


def test_long_work_draws_a_hundred_times(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    assert len(list(terminal.Progress(1234, "counting"))) == 1234
    assert screen.getvalue().count("\r") == 100


def test_nothing_is_written_elsewhere(terminal, capsys):
    assert list(terminal.Progress(3, "counting")) == [0, 1, 2]
    assert capsys.readouterr().out == ""


def test_options(terminal, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x"])
    assert terminal.options("Title.\n\nMore.", "x.svg") == (False, "x.svg")
    monkeypatch.setattr(sys, "argv", ["x", "--small", "--picture", "y.svg"])
    assert terminal.options("Title.", "x.svg") == (True, "y.svg")


def test_figures(terminal, capsys):
    terminal.report("x.svg", steps_taken=12, loss=0.123456789)
    assert capsys.readouterr().out == "steps taken: 12\nloss: 0.123457\npicture: x.svg\n"
