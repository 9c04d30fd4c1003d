"""`doctor`."""

import pytest

from calque.command_line import checking
from calque.command_line.commands import main


def test_all_is_well_here(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("all is well\n") and "PROBLEM" not in out
    assert len(out.splitlines()) == 1 + len(checking.CHECKS)


def test_problems_name_the_remedy_and_end_with_1(capsys, monkeypatch):
    monkeypatch.setattr(checking, "version", lambda name: "0.1" if name == "numpy" else "-")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "PROBLEM packages: numpy 0.1 is too old, 1.26 is needed; scipy is not installed" in out
    assert "pip install --upgrade calque" in out and out.endswith("1 problem\n")


def test_a_check_that_fails_by_itself_is_a_problem(capsys, monkeypatch):
    def broken():
        raise OSError("no disk")

    monkeypatch.setattr(checking, "CHECKS", {"disk": broken})
    assert main(["doctor"]) == 1
    assert "PROBLEM disk: OSError: no disk" in capsys.readouterr().out


def test_a_program_that_fails_on_xla_is_a_problem(monkeypatch):
    monkeypatch.setattr(checking, "version", lambda name: "0.99")
    monkeypatch.setattr(checking, "XLA_PROGRAM", "raise TypeError('no handler')")
    with pytest.raises(checking.Problem, match=r"jaxlib 0\.99 .* TypeError: no handler.*pip inst"):
        checking._xla()
    inside = "import calque; calque.jit(lambda x: x.no_such_name)(1.0)"
    monkeypatch.setattr(checking, "XLA_PROGRAM", inside)
    with pytest.raises(checking.Problem, match=r"fails: AttributeError: .*no_such_name"):
        checking._xla()
    monkeypatch.setattr(checking, "XLA_PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(checking, "XLA_SECONDS", 1)
    with pytest.raises(checking.Problem, match="it had not ended after 1 seconds"):
        checking._xla()
    monkeypatch.undo()
    monkeypatch.setattr(checking, "version", lambda name: "0.99")
    monkeypatch.setattr(checking, "XLA_PROGRAM", "")
    assert checking._xla().startswith("jaxlib 0.99, a program")


def test_wrong_numbers_are_noticed(monkeypatch):
    monkeypatch.setattr(checking, "jit", lambda f: lambda *args: f(*args) + 1)
    with pytest.raises(checking.Problem, match="wrong numbers"):
        checking._compiling()
