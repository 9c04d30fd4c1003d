"""Modules of new kernels: what stands in one, and in which order they are compiled."""

import pytest

from calque.machine.code.linked import Linked
from calque.native.emit import kernels, modules, objects
from calque.native.emit.modules import Modules
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import Buffer, const, ex, load, var


def test_the_last_modules_are_short():
    """Each thread then ends soon after the others; one thread alone gains nothing by that."""
    lengths = [modules.enough(left, 2) for left in (1e6, 64_000, 40_000, 0)]
    assert lengths == [modules._PART, 16_000, 10_000, modules._LEAST]
    assert modules.enough(0, 1) == modules._PART


def test_math_functions_are_compiled_before_the_last_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are long, and known as soon as the kernel that calls them is written."""
    monkeypatch.setattr(objects, "from_disk", lambda symbol, opt: None)
    monkeypatch.setattr(modules, "get_num_threads", lambda: 2)
    m = Modules(2)
    i = var("i", var("n"))
    x, y = Buffer("x", (var("n"),), "f32"), Buffer("y", (var("n"),), "f32")
    e = load(x, (i,))
    both = ex("add", ex("sin", e), ex("tanh", e))
    sines = (For(i, (Store(y, (i,), both),), (), "vector", 32),)
    many = [
        (For(i, (Store(y, (i,), ex("mul", e, const(k + 0.25, "f32"))),), (), "vector", 32),)
        for k in range(3)
    ]
    codes = [kernels.new_code(b, canonical(b), False, 2) for b in (*many, sines)]
    m.add(codes)
    assert m.known and list(m.open) == [2, 1]  # the kernel with math functions was written first
    m.compile()
    m.link()
    names = [name for part in m.parts for name in part.functions]
    assert set(m.known) <= set(names) and all(c.address for c in codes)
    assert all(isinstance(code, Linked) for code in m.known.values())
