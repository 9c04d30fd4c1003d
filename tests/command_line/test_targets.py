"""Functions and arguments as a command line names them."""

import math

import pytest

import calque
from calque.command_line.targets import TargetError, argument, function_of


def test_types_become_arrays():
    x = argument("f32[3,4]")
    assert x.shape == (3, 4) and x.dtype == "float32" and x.tolist()[0] == [1.0] * 4
    assert argument("i32[5]").shape == (5,) and argument("bf16").dtype == "bfloat16"
    assert argument(" bool[] ").dtype == "bool"


def test_values_and_containers():
    assert (
        argument("-3.5") == -3.5 and argument("'f32[3]'") == "f32[3]" and argument("None") is None
    )
    tree = argument('{"w": f32[2], "n": 3, "more": (i32, [True])}')
    assert calque.tree.map(lambda x: getattr(x, "shape", x), tree) == {
        "w": (2,),
        "n": 3,
        "more": ((), [True]),
    }


@pytest.mark.parametrize(
    "text", ["f32[x]", "f33[3]", "f32[3", "open('x')", "{**{}}", "", "f32[-1]"]
)
def test_what_is_neither(text):
    with pytest.raises(TargetError, match="neither a type"):
        argument(text)


def test_functions(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text("class Net:\n    def apply(self):\n        return 7\nnet = Net()\nN = 3\n")
    assert function_of(f"{path}:net.apply")() == 7
    assert function_of("math:sqrt") is math.sqrt


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("nothing", "names no function"),
        ("no_such_file.py:f", "no file 'no_such_file.py'"),
        ("no_such_module:f", "cannot be imported"),
        ("math:sqr", "there is 'sqrt'"),
        ("math:pi", "is no function but float"),
    ],
)
def test_what_is_not_there(target, text):
    with pytest.raises(TargetError, match=text):
        function_of(target)
