"""Memory for machine code: many images in few ranges, never writable and executable."""

import itertools
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from calque.machine.code import image
from calque.machine.code.arena import Arena, make_executable
from calque.machine.lang.unit import Unit, i64, load_i64, store_i64

pytestmark = pytest.mark.skipif(not image.usable(), reason="this system has no images")


def overlap(ranges: list[tuple[int, int]]) -> bool:
    ranges = sorted(ranges)
    return any(a + n > b for (a, n), (b, _) in itertools.pairwise(ranges))


def test_images_lie_side_by_side() -> None:
    arena = Arena()
    sizes = [(1 + 977 * k % 9000, 331 * k % 700, 1 << k % 7) for k in range(400)]
    places = [arena.place(*s) for s in sizes]
    assert not overlap([(p.code, -(-c // 4096) * 4096) for p, (c, _, _) in zip(places, sizes)])
    assert not overlap([(p.data, d) for p, (_, d, _) in zip(places, sizes)])
    assert all(p.code % 4096 == 0 and p.data % a == 0 for p, (_, _, a) in zip(places, sizes))
    assert len(arena.regions) < 5
    assert arena.used()[0] == sum(-(-c // 4096) * 4096 for c, _, _ in sizes)
    assert all(abs(p.code - p.data) < 1 << 31 for p in places)


@pytest.mark.parametrize(("code", "data"), [(5 << 20, 10), (10, 3 << 20), (2 << 20, 2 << 20)])
def test_a_large_image_has_a_region_of_its_own(code: int, data: int) -> None:
    arena = Arena()
    small = arena.place(10, 10, 8)
    large = arena.place(code, data, 64)
    assert len(arena.regions) == 2
    assert not overlap(
        [(small.code, 4096), (small.data, 10), (large.code, code), (large.data, data)]
    )
    make_executable(large.code, code)


def test_threads_never_get_the_same_place() -> None:
    arena, found, barrier = Arena(), [], threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            found.append(arena.place(3000, 40, 16))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not overlap([(p.code, 4096) for p in found])
    assert not overlap([(p.data, 40) for p in found])


def counting(k: int) -> Any:
    """A function that counts its calls from `1000 * k` on."""
    unit = Unit(f"test_arena_{k}")
    counter = unit.var(f"test_arena_counter_{k}", i64, 3)
    start = unit.cell(f"test_arena_start_{k}", i64, 1000 * k)

    @unit.function
    def count() -> i64:
        store_i64(counter, 8, load_i64(counter, 8) + 1)
        return start + load_i64(counter, 8)

    return count


def test_each_image_has_its_own_data() -> None:
    functions = [counting(k) for k in range(40)]
    for turn in (1, 2, 3):
        assert [f() for f in functions] == [1000 * k + turn for k in range(40)]


MANY = """
import calque as jax, calque.numpy as jnp
def maps():
    with open("/proc/self/maps") as lines:
        return len(list(lines))
x = jnp.arange(10.0)
def run(n):
    def f(x):
        for b in range(8):
            x = jnp.sin(x) + 1 if n >> b & 1 else x * 2 - jnp.abs(x)
        return x
    jax.jit(f)(x)
for n in range(5):
    run(n)
before = maps()
for n in range(5, 125):
    run(n)
print(maps() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads the map of the memory")
def test_kernels_take_no_ranges_of_their_own() -> None:
    # what is found on disk needs no LLVM, which takes ranges when it is loaded
    off = {"PYTHONPATH": os.pathsep.join(sys.path), "CALQUE_CACHE": "off"}
    environment = {**os.environ, **off}
    done = subprocess.run(
        [sys.executable, "-c", MANY], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 30  # 120 kernels; the heap of Python grows, too
