"""Machine code by symbol."""

import numpy as np

import calque
from calque.native import backend
from calque.native.emit import objects


def test_a_kernel_is_found_by_its_symbol() -> None:
    x = np.arange(30, dtype="f")
    made = backend.compile(calque.make_jaxpr(lambda x: (x * 3 + 1).sum())(x))
    (kernel,) = made.kernels
    found = objects.by_symbol(kernel.symbol)
    assert found is not None and found[0] == kernel.address
    assert found[1].addresses[kernel.symbol] == kernel.address
    assert objects.by_symbol("k_nobody_has_made_this") is None


def test_versions_are_of_the_files_in_the_folders(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.py").write_text("1")
    before = objects.fingerprint(str(tmp_path), ["a"])
    (tmp_path / "a" / "notes.txt").write_text("no source")
    assert objects.fingerprint(str(tmp_path), ["a"]) == before
    (tmp_path / "a" / "two.py").write_text("2")
    assert objects.fingerprint(str(tmp_path), ["a"]) != before
