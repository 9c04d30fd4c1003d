"""What can be run as a program; running it stands in test_switch."""

import pytest

from calque.compat.running import problem_of


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
    assert problem_of(arguments) == problem
