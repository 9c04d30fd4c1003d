"""`calque.stats()`: counters of the process, and of every cache."""

import ast
import gc
import pathlib

import numpy as np

import calque
import calque.numpy as jnp
from calque.machine.code import image
from calque.machine.state import process

SOURCES = pathlib.Path(calque.__file__).parent


def cache(name):
    return next(c for c in calque.stats().caches if c.name == name)


def test_it_lists_every_cache():
    names = [c.name for c in calque.stats().caches]
    assert names == [c.name for c in process.caches.counters()]
    assert names == sorted(set(names)) and len(names) > 25
    assert all(c.bound for c in calque.stats().caches)


def test_counters_count_what_happens():
    f = calque.jit(lambda x: x * 3)
    gc.collect()  # functions that other tests left behind
    before = cache("traces of functions under jit")
    f(jnp.ones(2))
    f(jnp.ones(2, "int32"))
    after = cache("traces of functions under jit")
    assert after.misses == before.misses + 2 and after.size == before.size + 2
    f.trace(jnp.ones(2))
    assert cache("traces of functions under jit").hits == after.hits + 1


def test_clearing_empties_what_holds_programs():
    f = calque.jit(lambda x: x @ x.T + jnp.sin(x).sum())
    for n in (2, 3, 4, 5):
        assert f(jnp.ones((n, n))).shape == (n, n)
        assert (jnp.ones(n) + jnp.ones(n)).shape == (n,)
    names = ("traces of functions under jit", "calls that differ in sizes alone", "kernels")
    assert all(cache(name).size for name in names)
    misses = [cache(name).misses for name in names]
    calque.clear_caches()
    assert [cache(name).size for name in names] == [0, 0, 0]
    assert [cache(name).misses for name in names] == misses
    assert f(jnp.ones((3, 3))).shape == (3, 3)


def test_kernels_that_were_forgotten_are_found_where_they_are_linked():
    f = calque.jit(lambda x: jnp.cos(x) * 5 - x)
    x = jnp.arange(5.0)
    want = np.asarray(f(x))
    compiles = calque.stats()["compiles"], calque.stats()["kernels_from_disk"]
    calque.clear_caches()
    np.testing.assert_array_equal(f(x), want)
    assert (calque.stats()["compiles"], calque.stats()["kernels_from_disk"]) == compiles


def test_the_table_names_each_cache_and_counter():
    stats = calque.stats()
    lines = str(stats).splitlines()
    assert [line.split()[0] for line in lines[: len(stats)]] == list(stats)
    assert lines[len(stats) + 1].split() == [
        "cache",
        "hits",
        "misses",
        "size",
        "evictions",
        "bound",
    ]
    for c, line in zip(stats.caches, lines[len(stats) + 2 :], strict=True):
        assert line.startswith(c.name) and ("- " if c.hits is None else f"{c.hits:,}") in line
    assert repr(stats) == str(stats) and isinstance(stats, dict)


def test_caches_are_declared_in_one_way():
    """No module keeps results by other means."""
    allowed = {"machine/caches.py", "machine/once.py"}
    for path in SOURCES.rglob("*.py"):
        own = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and own not in allowed:
                assert node.attr not in ("lru_cache", "cached_property", "WeakKeyDictionary"), own
                functools = isinstance(node.value, ast.Name) and node.value.id == "functools"
                assert not (functools and node.attr == "cache"), own


def test_the_bytes_of_code_grow_with_new_kernels() -> None:
    before = calque.stats()["bytes_of_code"]
    calque.jit(lambda x: calque.numpy.tanh(x) * 1.25 - calque.numpy.cosh(x) / 3 + x**5)(1.5)
    after = calque.stats()["bytes_of_code"]
    if image.usable():  # else the code is LLVM's
        assert before < after < before + (1 << 20)
    else:
        assert after == 0
