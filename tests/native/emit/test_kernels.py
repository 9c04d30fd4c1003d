"""Keys, caches, texts, and the golden views of some kernels (CALQUE_UPDATE_GOLDEN=1 rewrites
them)."""

import ast
import os
import pathlib
import shutil
import subprocess
import sys
from weakref import WeakValueDictionary

import numpy as np
import pytest

from calque.machine.caches import Entries
from calque.machine.code import diskcache, llvm
from calque.native.emit import emitter, kernels, making, modules, objects
from calque.native.emit.making import compile_kernels
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Acc, For, LoopValue, Recurrence, Store
from calque.native.scalars.expr import Buffer, const, ex, load, make, param, ref, var
from tests.native.run_kernel import call, words

GOLDENS = pathlib.Path(__file__).parent / "goldens"
c, f32 = const, lambda v: const(v, "f32")


def scaled(names="xyni", extra=None, factor=None):
    """y[i] = x[i] * p + constant, under any names."""
    a, b, size, loop = names
    n = var(size)
    i = var(loop, n)
    x, y = Buffer(a, (n,), "f32"), Buffer(b, (n,), "f32")
    e = ex("mul", load(x, (i,)), factor if factor is not None else param(a + "p", "f32"))
    return (For(i, (Store(y, (i,), ex("add", e, f32(extra or 1.0))),), (), "vector", 32),)


def rows(names="xynm", inner=None):
    a, b, size, width = names
    n, m = var(size), inner if inner is not None else var(width)
    i, j = var("i", n), var("j", m)
    x, y = Buffer(a, (n, m), "f32"), Buffer(b, (n,), "f32")
    return (
        For(
            i,
            (
                For(j, (), (Acc("s", "sum", load(x, (i, j))),), "vector", 64),
                Store(y, (i,), ref("s", "f32")),
            ),
        ),
    )


def test_equal_kernels_compile_once():
    (a,) = compile_kernels([scaled(extra=1234.5)])
    before = (kernels.stats.compiled, kernels.stats.memory)
    b, d = compile_kernels([scaled("uvwz", extra=1234.5), scaled("abcd", extra=1234.5)])
    assert a.address == b.address == d.address and a.symbol == b.symbol
    assert (kernels.stats.compiled, kernels.stats.memory) == (before[0], before[1] + 2)
    assert (
        [x.name for x in b.buffers] == ["u", "v"]
        and b.sizes == ("w",)
        and b.params[0].attr == ("up",)
    )


def test_new_kernels_of_one_call_that_are_equal_compile_once():
    before = kernels.stats.compiled
    a, b = compile_kernels([scaled(extra=99.25), scaled("abcd", extra=99.25)])
    assert a.code is b.code and kernels.stats.compiled <= before + 1


def test_exact_kernels_are_others():
    (a,), (b,) = (
        compile_kernels([scaled(extra=3.5)]),
        compile_kernels([scaled(extra=3.5)], exact=True),
    )
    assert a.symbol != b.symbol


@pytest.fixture
def private_cache(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CALQUE_CACHE", raising=False)
    diskcache.reload()
    monkeypatch.setattr(kernels, "_codes", Entries(1000))
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())
    yield
    monkeypatch.undo()
    diskcache.reload()


def test_kernels_are_found_on_disk(private_cache, monkeypatch):
    n = var("n")
    i, x, y = var("i", n), Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32")
    body = (For(i, (Store(y, (i,), make("exp", (load(x, (i,)),), "f32")),), (), "vector", 32),)
    bodies = [body, rows()]
    start = kernels.stats.compiled
    compile_kernels(bodies)
    assert kernels.stats.compiled == start + 2
    kernels._codes.clear()
    objects.linked.clear()  # as in another process
    monkeypatch.setattr(modules, "write", None)  # no text is made
    found = kernels.stats.disk
    k, _ = compile_kernels(bodies)
    assert kernels.stats.disk == found + 2 and kernels.stats.compiled == start + 2
    a, out = np.linspace(-3, 3, 45).astype("f4"), np.zeros(45, "f4")
    call(k.address, words(k, {x: a, y: out, "n": 45}))
    np.testing.assert_allclose(out, np.exp(a), rtol=1e-6)


NATIVE = pathlib.Path(kernels.__file__).parent.parent


def imports(path):
    """The files of native that a file of native imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *[f"{node.module}.{a.name}" for a in node.names]]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[:2] == ["calque", "native"]:
                place = NATIVE.joinpath(*parts[2:])
                found |= {
                    f for f in (place.with_suffix(".py"), place / "__init__.py") if f.exists()
                }
    return found


def test_all_that_decides_the_code_of_a_kernel_stands_in_its_key():
    closure, todo = set(), [NATIVE / "emit" / "emitter.py", NATIVE / "emit" / "kernels.py"]
    while todo:
        path = todo.pop()
        if path not in closure:
            closure.add(path)
            todo += imports(path)
    folders = {str(p.parent.relative_to(NATIVE)) for p in closure - {NATIVE / "__init__.py"}}
    assert folders == set(objects.IMPLEMENTED_BY)
    assert {"writer.py", "vector_loops.py", "tree.py", "node.py"} <= {p.name for p in closure}


def test_a_change_of_any_file_that_decides_the_code_changes_the_key(tmp_path):
    for folder in objects.IMPLEMENTED_BY:
        shutil.copytree(NATIVE / folder, tmp_path / folder, dirs_exist_ok=True)
    seen = {objects.fingerprint(str(tmp_path), objects.IMPLEMENTED_BY)}
    files = [p for f in objects.IMPLEMENTED_BY for p in sorted((tmp_path / f).glob("*.py"))]
    assert len(files) > 40
    for k, path in enumerate(files, 1):
        path.write_text(path.read_text() + "# changed\n")
        seen.add(objects.fingerprint(str(tmp_path), objects.IMPLEMENTED_BY))
        assert len(seen) == k + 1, path
    os.utime(files[0], ns=(0, 0))  # the same size at another time
    assert objects.fingerprint(str(tmp_path), objects.IMPLEMENTED_BY) not in seen


def test_new_kernels_are_compiled_in_modules_of_like_size(monkeypatch, tmp_path):
    """However they are cut, kernels have the same code, and are found on disk with the math
    functions that they share."""
    monkeypatch.setenv("CALQUE_CACHE_DIR", str(tmp_path))
    diskcache.reload()
    # math functions that an earlier test has linked are not in this cache
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())

    def bodies(extra):
        n = var("n")
        i = var("i", n)
        x, y = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32")
        e = load(x, (i,))
        sines = ex("add", ex("sin", e), ex("add", ex("tanh", e), ex("cos", e)))
        shared = (For(i, (Store(y, (i,), ex("mul", sines, f32(extra))),), (), "vector", 32),)
        return [scaled(extra=extra), shared, rows(inner=c(int(extra)))]

    def results(made):
        x = np.linspace(-1, 1, 40, dtype="f")
        out = []
        for k in made[:2]:
            y = np.zeros(40, "f")
            arrays = dict(zip(k.buffers, (x, y) if k.buffers[0].name == "x" else (y, x)))
            values = arrays | dict.fromkeys(k.sizes, 40) | dict.fromkeys(k.params, 3.0)
            call(k.address, words(k, values))
            out.append(y.tobytes())
        return out

    monkeypatch.setattr(modules, "get_num_threads", lambda: 1)
    counts = llvm.stats.compiled
    whole = compile_kernels(bodies(77.0))
    assert llvm.stats.compiled == counts + 3  # kernels without and with math functions, and these
    monkeypatch.setattr(modules, "get_num_threads", lambda: 2)
    monkeypatch.setattr(modules, "_LEAST", 1)
    counts = llvm.stats.compiled
    apart = compile_kernels(bodies(78.0))
    assert llvm.stats.compiled == counts + 3
    monkeypatch.setattr(kernels, "_codes", kernels.Table("kernels of a test", 8))
    monkeypatch.setattr(objects, "linked", WeakValueDictionary())
    before = kernels.stats.disk
    again = compile_kernels(bodies(78.0))
    assert kernels.stats.disk == before + 3
    assert results(apart) == results(again) != results(whole)
    diskcache.reload()


def test_equal_kernels_over_other_sizes_give_those_to_code_that_others_share(monkeypatch):
    """One of them is compared with what is alike; what that gives for its sizes is not what all
    give, and what divides its sizes need not divide theirs."""
    monkeypatch.setattr(making, "_LONG", 0)
    monkeypatch.setattr(making, "_MUCH", 0)

    def moved(size, by):
        n = var(size)
        i = var("i", n)
        x, y = Buffer("x", (n,), "f32"), Buffer("y", (c(300),), "f32")
        e = ex("add", load(x, (i,)), f32(1.375))
        return (For(i, (Store(y, (ex("add", i, c(by)),), e),), (), "vector", 32),)

    values = {"n": 64, "m": 77}
    made = compile_kernels([moved("n", 16), moved("m", 16), moved("n", 32)], values=values)
    assert len({k.code for k in made}) == 1
    assert [k.sizes for k in made] == [("n", 16), ("m", 16), ("n", 32)]
    x = np.arange(77, dtype="f")
    for k, n, by in zip(made, (64, 77, 64), (16, 16, 32), strict=True):
        y = np.zeros(300, "f")
        arrays = {b: x if b.name == "x" else y for b in k.buffers}
        call(k.address, words(k, arrays | values | {by: by}))
        want = np.zeros(300, "f")
        want[by : by + n] = x[:n] + np.float32(1.375)
        np.testing.assert_array_equal(y, want)


@pytest.fixture
def quick_code(private_cache, monkeypatch):
    """Code is made quickly however little there is to compile."""
    if not modules.has_quick_code():
        pytest.skip("LLVM's lowest level gives other bits on this processor")
    monkeypatch.setattr(making, "_MUCH", 0)


def products(factor):
    """Elements and sums in which a product and a sum may become one instruction, or two."""
    n = var("n")
    i, j = var("i", n), var("j", n)
    x, y, z = (Buffer(name, (n,), "f32") for name in "xyz")
    a = load(x, (i,))
    e = ex("sub", ex("add", ex("mul", a, f32(factor)), ex("mul", a, a)), ex("mul", a, f32(0.3)))
    square = ex("mul", load(x, (j,)), load(x, (j,)))
    total = For(j, (), (Acc("s", "sum", square),), "vector", 64)
    last = ex("add", ex("mul", ref("s", "f32"), ref("s", "f32")), load(x, (c(0),)))
    return [
        (For(i, (Store(y, (i,), e),), (), kind, width),)
        for kind, width in (("vector", 32), ("serial", 1))
    ] + [(total, Store(z, (c(0),), last))]


def results_of(made):
    """The bytes that kernels of `products` write."""
    x = np.random.default_rng(5).normal(size=77).astype("f")
    out = []
    for k in made:
        y = np.zeros(77, "f")
        values = {b: x if b.name == "x" else y for b in k.buffers} | dict.fromkeys(k.sizes, 77)
        call(k.address, words(k, values))
        out.append(y.tobytes())
    return out


def test_code_that_is_made_quickly_gives_the_same_bits(quick_code):
    quick = compile_kernels(products(1.7), brief=(0, 1, 2))
    slow = compile_kernels(products(1.7))
    assert [k.code.level for k in (*quick, *slow)] == [0, 0, 0, 1, 1, 1]
    assert results_of(quick) == results_of(slow)


def test_code_that_was_made_quickly_serves_what_is_brief_alone(quick_code):
    (a,) = compile_kernels([products(2.5)[0]], brief=[0])
    assert a.code.quick and compile_kernels([products(2.5)[0]], brief=[0])[0].code is a.code
    (b,) = compile_kernels([products(2.5)[0]])
    assert not b.code.quick and a.symbol != b.symbol
    assert compile_kernels([products(2.5)[0]], brief=[0])[0].code is b.code
    both = [products(3.5)[0]] * 2
    assert not compile_kernels(both, brief=[0])[0].code.quick  # one of them is not


def test_code_that_was_made_quickly_is_found_on_disk(quick_code):
    (a,) = compile_kernels([products(4.5)[0]], brief=[0])
    for _ in range(2):
        kernels._codes.clear()
        objects.linked.clear()  # as in another process
        before = kernels.stats.disk
        (b,) = compile_kernels([products(4.5)[0]], brief=[0])
        assert b.symbol == a.symbol and kernels.stats.disk == before + 1
        kernels._codes.clear()
        (a,) = compile_kernels([products(4.5)[0]])  # from now on the better code is found
        assert not a.code.quick


def test_little_is_compiled_with_care(private_cache):
    assert not compile_kernels([products(5.5)[0]], brief=[0])[0].code.quick


def test_a_kernel_that_fails_to_compile_is_not_kept(monkeypatch):
    def refuse(code, module):
        raise RuntimeError("no")

    body = scaled(extra=777.125)
    with monkeypatch.context() as patch:
        patch.setattr(modules, "write", refuse)
        patch.setattr(objects, "from_disk", lambda symbol, opt: None)
        with pytest.raises(RuntimeError):
            compile_kernels([body])
    assert compile_kernels([body])[0].address


def test_code_with_math_functions_is_of_a_higher_level():
    n = var("n")
    i = var("i", n)
    x, y = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32")
    sines = (For(i, (Store(y, (i,), ex("sin", load(x, (i,)))),), (), "vector", 32),)
    plain, math = compile_kernels([scaled(), sines])
    (low,) = compile_kernels([sines], opt=0)
    assert [k.code.level for k in (plain, math, low)] == [1, 2, 0]


def test_texts():
    (k,) = compile_kernels([scaled()])
    assert (
        "for i < n" in k.text() and "define void @k_" in k.text("llvm") and "ret" in k.text("asm")
    )
    with pytest.raises(ValueError, match="no text"):
        k.text("wasm")


def collatz():
    a, steps, y = ref("a", "i64"), ref("s", "i64"), Buffer("y", (c(1),), "i64")
    step = ex(
        "select",
        ex("eq", ex("and", a, c(1)), c(0)),
        ex("ashr", a, c(1)),
        ex("add", ex("mul", a, c(3)), c(1)),
    )
    loop = Recurrence(
        (LoopValue("a", param("p", "i64"), step), LoopValue("s", c(0), ex("add", steps, c(1)))),
        (),
        cond=ex("ne", a, c(1)),
    )
    return (loop, Store(y, (c(0),), steps))


@pytest.mark.parametrize(
    "name, body", [("scaled", scaled()), ("rows", rows()), ("collatz", collatz())]
)
def test_goldens(name, body):
    (k,) = compile_kernels([body])
    text = f"{k.text('loops')}\n\n{canonical(body).key}\n\n{run_text(body)}\n"
    path = GOLDENS / f"kernel_{name}.txt"
    if os.environ.get("CALQUE_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def run_text(body):
    order = canonical(body)
    f = emitter.write_kernel(
        "kernel", order.buffers, order.sizes, order.params, body, emitter.CodeOptions()
    )
    return f.text


AFTER_ANOTHER = """
import numpy as np
from calque.machine.code import llvm
llvm.object_code("define i64 @other(i64 %x) { ret i64 %x }", 0)  # before any kernel
from calque.native.emit import making
from calque.native.emit.making import compile_kernels
from tests.native.emit.test_kernels import products, results_of
making._MUCH = 0
quick = compile_kernels(products(1.7), brief=(0, 1, 2))
assert all(k.code.quick for k in quick)
assert results_of(quick) == results_of(compile_kernels(products(1.7)))
"""


def test_what_was_compiled_at_the_lowest_level_before_changes_no_bits() -> None:
    """A machine of LLVM's that chose instructions one by one would go on to do so."""
    if not modules.has_quick_code():
        pytest.skip("LLVM's lowest level gives other bits on this processor")
    root = pathlib.Path(__file__).parents[3]
    paths = os.pathsep.join([str(root), *sys.path])
    environment = {**os.environ, "CALQUE_CACHE": "off", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", AFTER_ANOTHER], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
