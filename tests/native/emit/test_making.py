"""Kernels that are compiled while the rest of their program is planned."""

import gc
import threading
import time
from collections.abc import Iterator
from weakref import WeakValueDictionary

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.backends import Options
from calque.machine.caches import Entries
from calque.machine.code import diskcache, llvm
from calque.native import backend, executable
from calque.native.emit import kernels, making, modules, objects
from calque.native.emit.making import Making
from calque.native.loops.tree import Body, For, Store
from calque.native.scalars.expr import Buffer, Expr, const, ex, load, var
from tests.native.hasty import hasty, in_haste  # noqa: F401
from tests.native.programs import traced
from tests.native.run_kernel import call, words


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is known, little is much, and there is another thread."""
    monkeypatch.setenv("CALQUE_CACHE", "off")
    diskcache.reload()
    monkeypatch.setattr(making, "_MUCH", 1)
    monkeypatch.setattr(kernels, "_codes", Entries(1000))
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())
    for module in (making, modules):
        monkeypatch.setattr(module, "get_num_threads", lambda: 2)
    yield
    monkeypatch.undo()
    diskcache.reload()


def scaled(factor: float, size: str = "n", by: int = 0) -> Body:
    i = var("i", var(size))
    x, y = Buffer("x", (var(size),), "f32"), Buffer("y", (const(300),), "f32")
    e: Expr = ex("mul", load(x, (i,)), const(factor, "f32"))
    at = ex("add", i, const(by)) if by else i
    return (For(i, (Store(y, (at,), e),), (), "vector", 32),)


def result(k: kernels.Kernel, **sizes: int) -> np.ndarray:
    x, y = np.arange(64, dtype="f"), np.zeros(300, "f")
    given = {b: x if b.name == "x" else y for b in k.buffers}
    call(k.address, words(k, given | sizes | {n: n for n in k.sizes if isinstance(n, int)}))
    return y


def test_what_was_begun_is_compiled_once() -> None:
    m, start = Making(), kernels.stats.compiled
    first, second = scaled(2.0), scaled(3.0)
    m.begin([first], {"n": 64})
    assert kernels.stats.compiled == start + 1 and m.modules is not None
    memory = kernels.stats.memory
    made = m.finish([second, first, scaled(2.0)], {"n": 64})
    assert kernels.stats.compiled == start + 2 and kernels.stats.memory == memory + 1
    assert made[1].code is made[2].code
    for k, factor in zip(made, (3, 2, 2), strict=True):
        np.testing.assert_array_equal(result(k, n=64)[:64], np.arange(64, dtype="f") * factor)
    (again,) = making.compile_kernels([scaled(2.0)], values={"n": 64})
    assert again.code is made[1].code


def test_little_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_MUCH", 1 << 20)
    m = Making()
    m.begin([scaled(2.0)], {})
    assert m.modules is None and not m.codes
    monkeypatch.setattr(making, "_MUCH", 1)
    monkeypatch.setattr(making, "get_num_threads", lambda: 1)
    m.begin([scaled(2.0)], {})
    assert m.modules is None and not m.codes


def test_what_was_begun_serves_only_sizes_that_it_suits() -> None:
    m = Making()
    m.begin([scaled(2.0)], {"n": 64})
    assert m.codes[0].multiples == (32,)
    values = {"n": 64, "m": 40}
    even, odd = m.finish([scaled(2.0), scaled(2.0, "m")], values)
    assert even.code is m.codes[0] and odd.code is not even.code
    np.testing.assert_array_equal(result(odd, m=40)[:40], np.arange(40, dtype="f") * 2)
    assert not result(odd, m=40)[40:].any()


def test_what_was_made_quickly_serves_only_what_is_brief() -> None:
    if not modules.has_quick_code():
        pytest.skip("LLVM's lowest level gives other bits on this processor")
    m = Making()
    m.begin([scaled(2.0), scaled(3.0)], {}, [0, 1])
    brief, other = m.finish([scaled(2.0), scaled(3.0)], {}, [0])
    assert brief.code.quick and brief.code is m.codes[0]
    assert not other.code.quick
    assert [result(k, n=64)[5] for k in (brief, other)] == [10, 15]


def test_codes_that_share_may_have_been_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """What serves several serves those that come later, too, and is compiled once."""
    monkeypatch.setattr(making, "_LONG", 0)
    m, start = Making(), kernels.stats.compiled
    early = [scaled(2.0, by=16), scaled(2.0, by=32)]
    m.begin(early, {"n": 64})
    late = [scaled(2.0, by=48), scaled(2.0, by=80)]
    made = m.finish([*late, *early], {"n": 64})
    assert kernels.stats.compiled == start + 1 and len({k.code for k in made}) == 1
    for k, by in zip(made, (48, 80, 16, 32), strict=True):
        y = result(k, n=64)
        np.testing.assert_array_equal(y[by : by + 64], np.arange(64, dtype="f") * 2)
        assert not y[:by].any() and not y[by + 64 :].any()


def test_what_nobody_wants_is_dropped() -> None:
    """As when planning fails: the thread ends, and the next program is right."""
    m = Making()
    m.begin([scaled(k + 0.5) for k in range(20)], {})
    m.drop()
    del m
    gc.collect()
    (k,) = making.compile_kernels([scaled(3.5)])
    assert result(k, n=64)[2] == 7


def test_who_compiles_lets_others_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """While LLVM works, others look for kernels and make their own, or even the same."""
    in_llvm, may_go_on = threading.Event(), threading.Event()
    compile_all, main = modules.Modules.compile, threading.get_ident()

    def slowly(self: modules.Modules) -> None:
        if threading.get_ident() != main:
            in_llvm.set()
            assert may_go_on.wait(60)
        compile_all(self)

    monkeypatch.setattr(modules.Modules, "compile", slowly)
    theirs: list[kernels.Kernel] = []
    thread = threading.Thread(target=lambda: theirs.extend(Making().finish([scaled(2.0)], {})))
    thread.start()
    assert in_llvm.wait(60)
    other, same = Making().finish([scaled(3.0), scaled(2.0)], {})
    may_go_on.set()
    thread.join()
    for k in (same, theirs[0]):
        assert np.array_equal(result(k, n=64)[:64], 2 * np.arange(64))
    assert np.array_equal(result(other, n=64)[:64], 3 * np.arange(64))


def test_a_program_begins_its_products_and_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []
    begin = Making.begin
    monkeypatch.setattr(
        Making, "begin", lambda self, *args: (begin(self, *args), begun.append(len(self.codes)))
    )

    def layers(x: jnp.ndarray, w: jnp.ndarray, v: jnp.ndarray) -> jnp.ndarray:
        for _ in range(3):
            x = jnp.tanh(x @ w) + x
        return lax.cumsum(calque.nn.softmax(x @ v), axis=1)

    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("f") for s in ((70, 96), (96, 96), (96, 33))]
    loss = calque.value_and_grad(lambda w, x, v: layers(x, w, v).sum())

    def step(w: jnp.ndarray, x: jnp.ndarray, v: jnp.ndarray) -> object:
        return loss(w, x, v), jnp.sin(v).sum(0)  # which writes nothing that it reads

    def leaves() -> list[bytes]:
        calque.clear_caches()
        out = calque.jit(step)(args[1], args[0], args[2])
        return [np.asarray(leaf).tobytes() for leaf in calque.tree_util.tree_leaves(out)]

    early = leaves()
    assert begun and begun[0] > 0 and begun[1] > begun[0]
    gc.collect()  # a program keeps no text of LLVM's
    assert not [x for x in gc.get_objects() if type(x) in (Making, modules.Modules)]
    monkeypatch.setattr(making, "get_num_threads", lambda: 1)
    assert leaves() == early


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many kernels are asked for, each time that some are begun."""
    asked: list[int] = []
    begin = Making.begin
    monkeypatch.setattr(
        Making,
        "begin",
        lambda self, bodies, *rest: (asked.append(len(bodies)), begin(self, bodies, *rest)),
    )
    return asked


def test_the_first_products_are_begun_while_others_are_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is begun at the end of lowering is what is left."""
    monkeypatch.setattr(executable, "EARLY", 1)
    begun = counted(monkeypatch)
    rng = np.random.default_rng(0)
    x, w, v = (rng.normal(size=s).astype("f") for s in ((70, 96), (96, 96), (96, 33)))
    made = calque.jit(lambda x, w, v: jnp.sin(jnp.tanh(x @ w) @ v))(x, w, v)
    assert begun[0] == 1 and begun[1] >= 2
    np.testing.assert_allclose(made, np.sin(np.tanh(x @ w) @ v), atol=2e-4)


def test_products_that_are_known_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known already is not begun: that is asked when the first are much, and at the end."""
    monkeypatch.setattr(executable, "EARLY", 1)

    def f(x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        for _ in range(12):
            x = jnp.tanh(x @ w)
        return x

    x, w = np.ones((70, 96), np.float32), np.ones((96, 96), np.float32)
    calque.jit(f)(x, w)
    asked = counted(monkeypatch)
    calque.jit(lambda x, w: f(x, w) + 1)(x, w)
    assert len(asked) == 3 and asked[0] == 1


@pytest.mark.usefixtures("in_haste")
def test_kernels_of_a_hasty_program_are_begun_while_others_are_scheduled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time there are some more, if no sharing of memory changes them."""
    monkeypatch.setattr(executable, "SOME", 2)
    begun = counted(monkeypatch)
    xs = [np.arange(4.0 * k, dtype="f").reshape(k, 4) for k in range(3, 9)]

    def sines(*xs: jnp.ndarray) -> list[jnp.ndarray]:
        return [jnp.sin(x) for x in xs]

    made = hasty(sines, *xs)
    assert sum(begun[:-1]) >= 2 and len(begun) > 2
    for got, x in zip(made.call(xs), xs, strict=True):
        np.testing.assert_allclose(got, np.sin(x), rtol=1e-5, atol=1e-7)
    begun.clear()
    carefully = backend.compile(traced(sines, *xs), Options())
    assert len(begun) <= 2
    for a, b in zip(made.call(xs), carefully.call(xs), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("there", [False, True])
def test_a_thread_waits_for_the_modules_of_a_long_program(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[llvm.Compiling] = []
    start = llvm.Compiling.start
    monkeypatch.setattr(llvm.Compiling, "start", lambda c: (started.append(c), start(c)))
    monkeypatch.setattr(llvm, "is_there", lambda: there)
    monkeypatch.setattr(making, "get_num_threads", lambda: 2)

    def long(x: jnp.ndarray, n: int) -> jnp.ndarray:
        for k in range(n):
            x = jnp.sin(x) + k
        return x

    x = np.ones(3, "f")
    short = backend.compile(traced(lambda x: long(x, 3), x), Options())
    assert not started
    made = backend.compile(traced(lambda x: long(x, executable.MANY), x), Options())
    assert len(started) == there
    np.testing.assert_allclose(short.call([x])[0], long(x, 3), rtol=1e-5)
    np.testing.assert_allclose(made.call([x])[0], long(x, executable.MANY), rtol=1e-5)
    for c in started:  # it does not wait for ever
        end = time.monotonic() + 60
        while c._begun:
            assert time.monotonic() < end
            time.sleep(0.001)
