"""Keys, caches, texts, and the golden views of some kernels (CALQUE_UPDATE_GOLDEN=1 rewrites
them)."""

import ast
import os
import pathlib
import shutil
from weakref import WeakValueDictionary

import numpy as np
import pytest

from calque.machine.caches import Entries
from calque.machine.code import diskcache
from calque.native.emit import emitter, kernels, objects
from calque.native.emit.kernels import compile_kernels
from calque.native.emit.math_functions import definition
from calque.native.loops.canonical import canonical
from calque.native.loops.tree import Acc, For, Recurrence, State, Store
from calque.native.scalars.expr import Buffer, const, ex, load, make, param, ref, var, walk
from tests.native.run_kernel import array, call, run, run_plain, words

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


def test_names_stand_in_no_key():
    assert canonical(scaled()).key == canonical(scaled("abcd")).key
    assert canonical(rows()).key == canonical(rows("yxmn")).key
    assert canonical(rows()).key != canonical(scaled()).key


def test_what_matters_stands_in_the_key():
    keys = {
        canonical(scaled(extra=v, factor=f)).key
        for v in (1.0, 2.0)
        for f in (None, f32(3.0), f32(-0.0), f32(0.0))
    }
    assert len(keys) == 8
    assert (
        canonical(rows()).key != canonical(rows(inner=c(5))).key != canonical(rows(inner=c(6))).key
    )


def test_leading_extents_stand_in_no_key():
    def first(extent):
        i, x = var("i", var("n")), Buffer("x", (extent, 4), "f32")
        return (For(i, (Store(x, (i, c(0)), f32(1.0)),)),)

    assert (
        canonical(first(c(10))).key == canonical(first(c(20))).key == canonical(first(var("q"))).key
    )


def test_order_of_arguments():
    o = canonical(rows("abkl"))
    assert (
        [b.name for b in o.buffers] == ["a", "b"] and set(o.sizes) == {"k", "l"} and o.params == []
    )
    assert [p.attr[0] for p in canonical(scaled("qrst")).params] == ["qp"]


def test_keys_of_deep_and_shared_expressions_are_linear():
    n = var("n")
    i, x = var("i", n), Buffer("x", (n,), "f32")
    e = load(x, (i,))
    for _ in range(20_000):
        e = ex("add", e, e)
    assert len(canonical((For(i, (Store(x, (i,), e),)),)).key) < 1_000_000


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
    monkeypatch.setattr(kernels, "_emit", None)  # no text is made
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


def test_a_kernel_that_fails_to_compile_is_not_kept(monkeypatch):
    def refuse(codes):
        raise RuntimeError("no")

    body = scaled(extra=777.125)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_emit", refuse)
        patch.setattr(objects, "from_disk", lambda symbol, opt: None)
        with pytest.raises(RuntimeError):
            compile_kernels([body])
    assert compile_kernels([body])[0].address


def test_texts():
    (k,) = compile_kernels([scaled()])
    assert (
        "for i < n" in k.text() and "define void @k_" in k.text("llvm") and "ret" in k.text("asm")
    )
    with pytest.raises(ValueError, match="no text"):
        k.text("wasm")


def test_math_functions_are_strict_in_line_and_shared():
    """The same bits in line, called, as vectors, as scalars and in tails."""
    assert all(
        e.attr == "strict"
        for e in walk(definition("exp", ("f32",), "f32"), set())
        if e.op in ("add", "sub", "mul") and e.dtype == "f32"
    )
    n = var("n")
    i, x, y = var("i", n), array("x", "f32", n), array("y", "f32", n)
    a = np.linspace(-20, 20, 77).astype("f4")
    results = []
    for name in ("exp", "sin", "tanh"):
        e = make(name, (load(x, (i,)),), "f32")
        for kind, width in (("serial", 1), ("vector", 16), ("vector", 32)):
            out = np.zeros(77, "f4")
            run((For(i, (Store(y, (i,), e),), (), kind, width),), {x: a, y: out, "n": 77})
            results.append(out)
            out = np.zeros(77, "f4")
            run(
                (
                    For(
                        i,
                        (
                            Store(
                                y,
                                (i,),
                                ex(
                                    "add",
                                    make("exp", (e,), "f32"),
                                    ex("sub", make("log", (e,), "f32"), e),
                                ),
                            ),
                        ),
                        (),
                        kind,
                        width,
                    ),
                ),
                {x: a, y: out, "n": 77},
            )
        for r in results[1:]:
            np.testing.assert_array_equal(results[0], r)
        results.clear()


def test_what_is_rare():
    n = var("n")
    i, x, y = var("i", n), array("x", "f32", n), array("y", "f32", n)
    v = load(x, (i,))
    e = make("rare", (ex("gt", v, f32(10.0)), v, ex("neg", ex("sqrt", v))), "f32")
    for kind, width in (("serial", 1), ("vector", 32)):
        for a in (np.arange(50, dtype="f4"), np.zeros(50, "f4")):
            out = np.zeros(50, "f4")
            text = run_plain(
                (For(i, (Store(y, (i,), e),), (), kind, width),), {x: a, y: out, "n": 50}
            )
            np.testing.assert_array_equal(out, np.where(a > 10, -np.sqrt(a), a))
            assert "label %r" in text


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_math_of_narrow_floats(dtype):
    from tests.native.run_kernel import NP

    n = var("n")
    i, x, y = var("i", n), array("x", dtype, n), array("y", dtype, n)
    a, out = np.linspace(-3, 3, 45).astype(NP[dtype]), np.zeros(45, NP[dtype])
    run(
        (For(i, (Store(y, (i,), make("exp", (load(x, (i,)),), dtype)),), (), "vector", 32),),
        {x: a, y: out, "n": 45},
    )
    np.testing.assert_array_equal(out, np.exp(a.astype("f8")).astype("f4").astype(NP[dtype]))


def collatz():
    a, steps, y = ref("a", "i64"), ref("s", "i64"), Buffer("y", (c(1),), "i64")
    step = ex(
        "select",
        ex("eq", ex("and", a, c(1)), c(0)),
        ex("ashr", a, c(1)),
        ex("add", ex("mul", a, c(3)), c(1)),
    )
    loop = Recurrence(
        (State("a", param("p", "i64"), step), State("s", c(0), ex("add", steps, c(1)))),
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
