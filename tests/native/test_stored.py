"""Programs that another process planned: what is found is what was planned, and whatever decides
the words stands in the key."""

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dtypes import ExtendedDType
from calque.extend.random import define_prng_impl
from calque.machine.code import diskcache
from calque.machine.driver import stored as data_of_programs
from calque.native import backend, executable, routines, stored
from calque.native.emit import objects
from calque.native.passes.pipeline import run as run_passes
from tests.native.caching import private_cache  # noqa: F401
from tests.native.hasty import in_haste  # noqa: F401

pytestmark = pytest.mark.usefixtures("private_cache")


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = jnp.tanh(x @ w) + x.mean(0)
    return x, lax.fori_loop(0, 4, lambda i, a: a * 0.5 + jnp.sin(a) * i, x[0])


X, W = np.linspace(-1, 1, 60, dtype="f").reshape(6, 10), np.full((10, 10), 0.1, "f")


def compiled(f: Any, *args: Any, **options: Any) -> Any:
    closed = calque.make_jaxpr(f)(*args)
    return backend.compile(closed, Options(**options))


def test_the_second_program_is_found_and_gives_the_same_bits() -> None:
    kept, found = stored.stats.kept, stored.stats.found
    first = compiled(layers, X, W)
    assert type(first) is not backend.Found and stored.stats.kept == kept + 1
    second = compiled(layers, X, W)
    assert type(second) is backend.Found and stored.stats.found == found + 1
    for a, b in zip(first.call([X, W]), second.call([X, W]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert second.memory_analysis() == first.memory_analysis()
    assert second._planned is None  # all of that took no plan
    for stage in ("loops", "driver", "steps", None):
        assert second.as_text(stage) == first.as_text(stage)
    assert len(second.kernels) == len(first.kernels) and not second.host_calls
    with pytest.raises(TypeError, match=r"was called with f32\[2,10\]"):
        second.call([X[:2], W])


@pytest.mark.usefixtures("in_haste")
def test_a_hasty_program_is_found_by_who_is_in_haste_until_there_is_a_better_one() -> None:
    first = compiled(layers, X, W, hasty=True)
    assert type(first) is executable.NativeExecutable and first.hasty
    second = compiled(layers, X, W, hasty=True)
    assert type(second) is backend.Found and second.hasty
    better = second.improved()
    assert not better.hasty
    third = compiled(layers, X, W, hasty=True)
    assert type(third) is backend.Found and not third.hasty
    results = [
        [np.asarray(a).tobytes() for a in e.call([X, W])] for e in (first, second, better, third)
    ]
    assert results == [results[0]] * 4


@pytest.mark.usefixtures("in_haste")
def test_who_is_not_in_haste_takes_no_hasty_program() -> None:

    def other(x: Any, w: Any) -> Any:
        return layers(x * 2, w)

    assert compiled(other, X, W, hasty=True).hasty
    careful = compiled(other, X, W)
    assert type(careful) is executable.NativeExecutable and not careful.hasty
    found = compiled(other, X, W, hasty=True)
    assert type(found) is backend.Found and not found.hasty


def draws(key: Any, x: Any) -> Any:
    """What models do with keys: typed ones in and out, in loops, from a seed."""
    one, two = calque.random.split(key)
    keep = calque.random.bernoulli(one, 0.8, x.shape)
    x = jnp.where(keep, x / 0.8, 0) + calque.random.normal(two, x.shape)
    more = lax.fori_loop(0, 3, lambda i, k: calque.random.fold_in(k, i), two)
    return x, more, calque.random.uniform(calque.random.key(x.shape[0]), (3,))


def test_programs_that_draw_are_found() -> None:
    key, x = calque.random.key(5), np.ones((4, 5), "f")
    first, second = compiled(draws, key, x), compiled(draws, key, x)
    assert type(first) is not backend.Found and type(second) is backend.Found
    for a, b in zip(first.call([key, x]), second.call([key, x]), strict=True):
        assert a.aval == b.aval and bits(a) == bits(b)
    assert second.call([key, x])[1].dtype == key.dtype


def bits(a: Any) -> bytes:
    words = calque.random.key_data(a) if isinstance(a.aval.dtype, ExtendedDType) else a
    return bytes(np.asarray(words).tobytes())


def test_each_algorithm_has_its_own_programs_and_those_of_this_process_have_none() -> None:
    x = np.ones((4, 5), "f")
    names = [
        stored.key_of(
            run_passes(calque.make_jaxpr(draws)(calque.random.key(1, impl=i), x)), Options()
        )
        for i in ("threefry2x32", "rbg", "unsafe_rbg", "philox4x32")
    ]
    assert None not in names and len({*names}) == 4
    own = define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: jnp.full(2, 7, "uint32"),
        split=lambda key, shape: jnp.broadcast_to(key, (*shape, 2)),
        random_bits=lambda key, width, shape: jnp.broadcast_to(key[0], shape),
        fold_in=lambda key, data: key + data,
        name="threefry2x32",
    )
    key = calque.random.key(1, impl=own)
    closed = run_passes(calque.make_jaxpr(draws)(key, x))
    assert stored.key_of(closed, Options()) is None


OWN = """
import sys
import calque, calque.numpy as jnp
from calque import lax
from calque.extend.core import Primitive
from calque.interpreters import mlir
wave = Primitive("wave")
wave.def_abstract_eval(lambda x: x)
mlir.register_lowering(wave, mlir.lower_fun(getattr(jnp, sys.argv[1]), multiple_results=False))
def body(x, _):
    for _ in range(5):
        x = wave.bind(x) * 2 + 1
    return x, None
f = calque.jit(lambda x: lax.scan(body, x, None, length=3)[0])
want, x = getattr(jnp, sys.argv[1]), jnp.ones(4)
for _ in range(15):
    x = want(x) * 2 + 1
assert jnp.allclose(f(jnp.ones(4)), x, rtol=1e-3), (f(jnp.ones(4)), x)
print(calque.stats()["programs_from_disk"])
"""


def test_what_the_user_has_defined_is_told_by_its_program(tmp_path: pathlib.Path) -> None:
    """Another process may define it otherwise, in loops, too, whose bodies are not inlined yet."""
    environment = {**os.environ, "CALQUE_CACHE_DIR": str(tmp_path), "CALQUE_VERIFY_KERNELS": "0"}
    found = [
        subprocess.run(
            [sys.executable, "-c", OWN, name],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        ).stdout.strip()
        for name in ("sin", "tanh", "sin")
    ]
    assert found == ["0", "0", "1"]


def test_programs_whose_parameters_are_operations_are_found() -> None:
    def pooled(x: Any) -> Any:
        for _ in range(3):
            x = lax.reduce_window(jnp.tanh(x), -jnp.inf, lax.max, (1, 2), (1, 2), "VALID")
        return (x**2).sum()

    x = np.linspace(-1, 1, 64, dtype="f").reshape(4, 16)
    slope = calque.grad(pooled)
    first, second = compiled(slope, x), compiled(slope, x)
    assert type(first) is not backend.Found and type(second) is backend.Found
    assert bits(first.call([x])[0]) == bits(second.call([x])[0])


def test_rules_of_derivatives_are_no_part_of_programs() -> None:
    def scaled(rule: float) -> Any:
        @calque.custom_jvp
        def f(x: Any) -> Any:
            return jnp.tanh(x) + 1

        f.defjvp(lambda x, t: (f(x[0]), t[0] * rule))

        def looped(x: Any) -> Any:
            return lax.fori_loop(0, 3, lambda i, y: calque.vmap(f)(y * 2 + i) - jnp.sin(y), x)

        return looped

    x = np.ones((3, 4), "f")
    first, second = compiled(scaled(1.0), x), compiled(scaled(2.0), x)
    assert type(first) is not backend.Found and type(second) is backend.Found
    for a, b in zip(first.call([x]), second.call([x]), strict=True):
        assert bits(a) == bits(b)
    slopes = [calque.jit(calque.grad(lambda x, f=scaled(r): f(x).sum()))(x) for r in (1.0, 2.0)]
    assert bits(slopes[0]) != bits(slopes[1])


def transforms(x: Any) -> Any:
    for _ in range(3):
        x = jnp.fft.irfft2(jnp.fft.rfft2(x) * 0.5) + jnp.sort(x, axis=0)
    return x, jnp.linalg.svd(x, full_matrices=False), jnp.linalg.cholesky(x @ x.T + jnp.eye(64))


def test_programs_with_routines_and_functions_of_lapack_are_found() -> None:
    x = np.linspace(-1, 1, 64 * 40, dtype="f").reshape(64, 40) ** 3
    kept, found = stored.stats.kept, stored.stats.found
    first = compiled(transforms, x)
    assert type(first) is not backend.Found and stored.stats.kept == kept + 1
    second = compiled(transforms, x)
    assert type(second) is backend.Found and stored.stats.found == found + 1
    for a, b in zip(first.call([x]), second.call([x]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    places = second.program.places
    assert places is not None
    names = {name for _, name in (*places.calls, *places.externals) if " " in name}
    assert {"fft calque_fft_single", "sort calque_sort", "spectral calque_svd"} <= names
    assert {"factors calque_cholesky", "lapack sgesdd", "lapack spotrf"} <= names


def test_a_program_is_planned_where_a_function_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.linspace(-1, 1, 64 * 40, dtype="f").reshape(64, 40) ** 3
    compiled(transforms, x)
    monkeypatch.setattr(routines, "by_name", lambda name: None)
    assert type(compiled(transforms, x)) is not backend.Found


def test_arrays_are_those_of_the_program_that_asks() -> None:
    def with_table(table: np.ndarray) -> Any:
        constant = jnp.asarray(table)

        def f(x: Any) -> Any:
            for _ in range(4):
                x = jnp.sin(x * constant) + constant.sum()
            return x

        return f

    one, two = np.arange(50, dtype="f"), np.arange(50, dtype="f")[::-1].copy()
    x = np.linspace(0, 1, 50, dtype="f")
    compiled(with_table(one), x)
    other = compiled(with_table(two), x)
    assert type(other) is backend.Found
    with config.override("calque_disable_jit", True):
        want = with_table(two)(x)
    np.testing.assert_allclose(other.call([x])[0], want, rtol=1e-5, atol=1e-5)


def test_donated_arguments_and_branches() -> None:
    def f(x: Any, i: Any) -> Any:
        y = lax.cond(i > 1, lambda a: jnp.exp(a) * 2, lambda a: jnp.cos(a) - 1, x)
        for _ in range(5):
            y = y * 1.5 + jnp.sqrt(jnp.abs(y))
        return y

    x = np.linspace(0, 1, 40, dtype="f")
    first = compiled(f, x, np.int32(2), donated=(0,))
    second = compiled(f, x, np.int32(2), donated=(0,))
    assert type(second) is backend.Found and second.program.flags == first.program.flags
    for i in (0, 2):
        a = first.call([jnp.array(x), jnp.int32(i)])[0]
        b = second.call([jnp.array(x), jnp.int32(i)])[0]
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert type(compiled(f, x, np.int32(2))) is not backend.Found  # nothing is donated


def key(f: Any, *args: Any, **options: Any) -> str | None:
    closed = run_passes(calque.make_jaxpr(f)(*args))
    made = stored.key_of(closed, Options(**options))
    return None if made is None else made.name


def chain(scale: float, function: Any = jnp.sin, axis: int = 0) -> Any:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = function(x) * scale + x.sum(axis, keepdims=True)
        return x

    return f


def test_whatever_decides_the_words_stands_in_the_key() -> None:
    x = np.ones((4, 4), "f")
    keys = [
        key(chain(2.0), x),
        key(chain(2.5), x),
        key(chain(2.0, jnp.cos), x),
        key(chain(2.0, axis=1), x),
        key(chain(2.0), np.ones((4, 5), "f")),
        key(chain(2.0), np.ones((4, 4), "f2")),
        key(chain(2.0), x, exact=True),
        key(chain(2.0), x, donated=(0,)),
        key(lambda x: chain(2.0)(x)[0], x),
        key(lambda x: lax.scan(lambda c, _: (chain(2.0)(c), c), x, None, 3), x),
        key(lambda x: lax.scan(lambda c, _: (chain(3.0)(c), c), x, None, 3), x),
    ]
    assert None not in keys and len(set(keys)) == len(keys)
    assert key(chain(2.0), x) == keys[0]
    assert key(chain(3.5), x) == keys[1]  # a word of its own
    before = calque.get_num_threads()
    try:
        calque.set_num_threads(1 + before % 2)
        assert key(chain(2.0), x) != keys[0]
    finally:
        calque.set_num_threads(before)


def test_what_calls_python_or_routines_is_planned_in_every_process() -> None:
    def f(x: Any) -> Any:
        y = calque.pure_callback(np.sin, calque.ShapeDtypeStruct((4,), np.float32), x)
        for _ in range(6):
            y = y * 2 + jnp.cos(y)
        return y

    x = np.ones(4, "f")
    kept = stored.stats.kept
    assert type(compiled(f, x)) is type(compiled(f, x))
    assert stored.stats.kept == kept


def test_tables_that_planning_made_are_kept_with_the_program() -> None:
    image, filters = np.linspace(-1, 1, 2 * 9 * 9 * 8, dtype="f").reshape(2, 9, 9, 8), X

    def f(x: Any, w: Any) -> Any:
        w = jnp.resize(w, (3, 3, 8, 8))
        for _ in range(3):
            x = lax.conv_general_dilated(
                jnp.tanh(x), w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        return x * jnp.asarray([2.0], "f")

    kept, found = stored.stats.kept, stored.stats.found
    first = compiled(f, image, filters)
    made = len(first.planner.consts) - len(first.simplified.consts)
    assert made > 0 and stored.stats.kept == kept + 1
    second = compiled(f, image, filters)
    assert type(second) is backend.Found and stored.stats.found == found + 1
    for a, b in zip(first.call([image, filters]), second.call([image, filters]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_a_program_without_its_kernels_is_planned() -> None:
    compiled(layers, X, W)
    objects.linked.clear()
    folder = diskcache.directory()
    assert folder is not None
    for path in pathlib.Path(folder).rglob("*.kernel"):
        path.unlink()
    from calque.native.emit import kernels

    kernels._codes.clear()
    again = compiled(layers, X, W)
    assert type(again) is not backend.Found
    np.testing.assert_allclose(again.call([X, W])[0], calque.jit(layers)(X, W)[0], rtol=1e-6)


def test_a_change_of_any_file_changes_the_key(tmp_path: pathlib.Path) -> None:
    package = pathlib.Path(stored.__file__).parent.parent
    for room in ("native/plan", "native/lower", "machine/driver", "core"):
        shutil.copytree(package / room, tmp_path / room, dirs_exist_ok=True)
    rooms = ["native", "machine", "core"]
    seen = {objects.fingerprint(str(tmp_path), rooms, deep=True)}
    files = sorted(p for room in rooms for p in (tmp_path / room).rglob("*.py"))
    assert {p.parent.name for p in files} == {"plan", "lower", "driver", "core"}
    changed = files[:: len(files) // 12]
    for path in changed:
        path.write_text(path.read_text() + "# changed\n")
        seen.add(objects.fingerprint(str(tmp_path), rooms, deep=True))
    assert len(seen) == 1 + len(changed)


def test_another_process_plans_nothing() -> None:
    script = """
import sys, numpy as np, calque, calque.numpy as jnp
def f(x):
    for _ in range(6):
        x = jnp.tanh(x * 2) + x.sum()
    return x
print(np.asarray(calque.jit(f)(np.linspace(0, 1, 30, dtype="f"))).tobytes().hex())
planner = ("calque.native.plan", "llvmlite.binding")
print(sorted(m for m in sys.modules if m.startswith(planner)))
"""
    env = {**os.environ, "CALQUE_VERIFY_KERNELS": "0"}
    one, two = (
        subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert one[0] == two[0]
    assert "calque.native.plan.blocks" in one[1] and two[1] == "[]"


def test_data_of_a_program_are_plain() -> None:
    planned = compiled(layers, X, W)
    numbers = [n for _, n in planned.program.places.numbers]
    assert len(set(numbers)) == len(numbers) > 0
    data = data_of_programs.as_data(planned.program, [], numbers)
    assert data is not None and len(data) == 11
    assert data_of_programs.as_data(planned.program, [], numbers[1:]) is None


def test_small_programs_are_found_in_memory_alone() -> None:
    def small(by: float) -> Any:
        return lambda x: x * by + 1

    x = np.ones((4, 4), "f")
    kept, found = stored.stats.kept, stored.stats.found
    assert type(compiled(small(3.5), x)) is executable.NativeExecutable
    again = compiled(small(4.5), x)
    assert type(again) is backend.Found and stored.stats.found == found + 1
    np.testing.assert_array_equal(again.call([x])[0], x * 4.5 + 1)
    assert stored.stats.kept == kept
    calque.clear_caches()
    assert type(compiled(small(3.5), x)) is executable.NativeExecutable


def test_texts_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(c.name == "programs as text" and c.bound == 256 for c in calque.stats().caches)
    monkeypatch.setattr(stored, "SMALL", 100)
    assert type(compiled(layers, X, W)) is executable.NativeExecutable
    assert len(stored.recent) == 0
    assert type(compiled(layers, X, W)) is backend.Found  # from disk


def test_without_a_cache_directory_programs_are_found_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CALQUE_CACHE_DIR", "")
    diskcache.reload()
    first = compiled(layers, X, W)
    second = compiled(layers, X, W)
    assert type(second) is backend.Found
    for a, b in zip(first.call([X, W]), second.call([X, W]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.usefixtures("in_haste")
def test_a_program_of_other_numbers_takes_the_better_kernels_of_the_first() -> None:
    def scaled(by: float) -> Any:
        return lambda x, w: layers(x * by, w)

    first = compiled(scaled(1.75), X, W, hasty=True, exact=True)
    second = compiled(scaled(1.25), X, W, hasty=True, exact=True)
    assert first.hasty and second.hasty and type(second) is backend.Found
    assert not first.improved().hasty
    better = second.improved()
    assert type(better) is backend.Found and not better.hasty
    assert second._planned is None and better._planned is None
    for a, b in zip(second.call([X, W]), better.call([X, W]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
