"""Arrays of a kernel's own: small ones on the stack, the others in memory that is given back."""

import numpy as np
import pytest

import calque
from calque.native.emit.scratch import GIVE, STACK, TAKE, around, arrays, size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("float", 4),
        ("i1", 1),
        ("i16", 2),
        ("[3 x double]", 24),
        ("<16 x float>", 64),
        ("[10 x <8 x half>]", 160),
        ("[2 x [3 x i64]]", 48),
        ("ptr", 8),
    ],
)
def test_bytes_of_types(text: str, nbytes: int) -> None:
    assert size(text) == nbytes


def test_small_arrays_stand_on_the_stack() -> None:
    made = arrays([("%a", f"[{STACK} x i8]")])
    assert not made.taken and "alloca" in made.lines[0]
    assert around(" ret void", made).splitlines() == ["entry:", *made.lines, " ret void"]


def test_large_arrays_are_taken_at_once_and_given_back_at_every_end() -> None:
    made = arrays([("%a", "[9000 x float]"), ("%b", "[4 x float]"), ("%c", "[5000 x double]")])
    assert made.taken and next(line for line in made.lines if "alloca" in line).startswith(" %b")
    assert f"@{TAKE}(ptr %args, i64 {36_032 + 40_000})" in "\n".join(made.lines)
    lines = around(" br i1 %x, label %y, label %z\ny:\n ret void\nz:\n ret void", made)
    assert lines.count(f"@{GIVE}(ptr %scratch)\n ret void") == 2
    assert lines.count("ret void") == 3  # and where there is no memory


def test_a_kernel_gives_back_what_it_took() -> None:
    """A long product copies its rows; memory in use is the same after many calls."""
    a, b = (np.ones(s, np.float32) for s in ((300, 1200), (1200, 80)))
    f = calque.jit(lambda a, b: a @ b)
    text = f.lower(a, b).compile().as_text("llvm")
    assert f"@{TAKE}(" in text and f"@{GIVE}(" in text
    f(a, b)
    before = calque.devices()[0].memory_stats()["bytes_in_use"]
    for _ in range(10):
        assert float(f(a, b)[299, 79]) == 1200
    assert calque.devices()[0].memory_stats()["bytes_in_use"] <= before
