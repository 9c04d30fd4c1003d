"""XLA asks functions how they are split among devices, and runs what they answer.

The tests of this file run in a process of their own, which has eight devices."""

from __future__ import annotations

import gc
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.experimental.custom_partitioning import (
    BATCHING,
    SdyShardingRule,
    custom_partitioning,
)
from calque.sharding import AxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.tiles import tiles_of
from calque.xla import jaxlib
from calque.xla.lower.partitioned import asked_about
from calque.xla.partitioners import inferred, partitioned, propagated
from tests.xla.many_devices import in_many
from tests.xla.mlir import needs_jaxlib

pytestmark = needs_jaxlib
of_eight, test_with_many_devices = in_many(8, __file__)
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh_of(platform: str = "xla_cpu", kind: Any = AxisType.Auto) -> Mesh:
    devices = np.array(jax.devices(platform)[:8]).reshape(4, 2)
    return Mesh(devices, ("x", "y"), axis_types=(kind,) * 2)


def split(x: Any, *spec: Any) -> Any:
    return jax.device_put(x, NamedSharding(mesh_of(), P(*spec)))


def asks(answer: Any, rule: Any = "i j -> i j", static: Any = (), **said: Any) -> Any:
    """A function that doubles, whose rule is `answer`; the shardings that it was asked about."""
    seen: list[Any] = []

    def partition(*given: Any) -> Any:
        *_, args, result = given
        seen.append((args[0].sharding.spec, jax.tree.map(lambda s: s.sharding.spec, result)))
        return answer(*given)

    f = custom_partitioning(lambda x, *rest: x * 2, static_argnums=static)
    f.def_partition(partition, sharding_rule=rule, **said)
    return f, seen


def tripled(mesh: Any, args: Any, result: Any) -> Any:
    """Tells by its numbers that it was asked: it triples."""
    return mesh, lambda x: x * 3, result.sharding, (args[0].sharding,)


@of_eight
def test_the_function_of_the_parts_runs_where_operands_are_split() -> None:
    f, seen = asks(tripled)
    for spec in (("x", "y"), ("x",), (None, ("x", "y"))):
        out = jax.jit(f)(split(X, *spec))
        assert np.array_equal(out, X * 3) and out.sharding.spec == P(*spec)
    padded = [P("x", "y"), P("x", None), P(None, ("x", "y"))]
    assert seen == [(s, s) for s in padded]
    with jax.set_mesh(mesh_of()):
        assert np.array_equal(jax.jit(f, out_shardings=P("y"))(X), X * 3)
    assert seen[-1] == (P("y", None), P("y", None))


@of_eight
def test_one_device_and_eager_calls_run_the_function_itself() -> None:
    f, seen = asks(tripled)
    assert np.array_equal(f(split(X, "x")), X * 2)
    one = jax.device_put(X, jax.devices("xla_cpu")[3])
    assert np.array_equal(jax.jit(f)(one), X * 2) and not seen
    inside = jax.shard_map(f, mesh=mesh_of(), in_specs=P("x", "y"), out_specs=P("x", "y"))
    assert np.array_equal(jax.jit(inside)(split(X, "x")), X * 2) and not seen


@of_eight
def test_loops_and_branches_ask() -> None:
    f, seen = asks(tripled)

    def run(x: Any, p: Any) -> Any:
        y = lax.fori_loop(0, 2, lambda i, c: f(c), x)
        return lax.cond(p, f, lambda v: v, y)

    out = jax.jit(run)(split(X, "x", "y"), True)
    assert np.array_equal(out, X * 27) and len(seen) == 2


@of_eight
def test_a_fourier_transform_keeps_what_is_split_but_for_its_own_dimension() -> None:
    """The example of JAX's documentation."""

    def supported(s: Any, rank: int) -> Any:
        first = s.spec[: min(len(s.spec), rank - 1)]
        return NamedSharding(s.mesh, P(*first, *(None,) * (rank - len(first))))

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        kept = supported(args[0].sharding, args[0].ndim)
        return mesh, jnp.fft.fft, kept, (kept,)

    f = custom_partitioning(lambda x: jnp.fft.fft(x))
    rule = SdyShardingRule(operand_mappings=((BATCHING, "i"),), result_mappings=((BATCHING, "i"),))
    for said in (rule, "...i -> ...i"):
        f.def_partition(partition, sharding_rule=said)
        g = jax.jit(f)
        for x in (split(X.astype(np.complex64), "x"), split(X.astype(np.complex64), "x", "y")):
            np.testing.assert_allclose(g(x), np.fft.fft(X), rtol=1e-4, atol=1e-4)
        text = g.lower(split(X.astype(np.complex64), "x")).compile().as_text()
        assert "all-gather" not in text and "dynamic-slice" not in text
        assert "all-gather" in g.lower(split(X.astype(np.complex64), "x", "y")).compile().as_text()
    line = split(np.arange(8, dtype=np.complex64), "x")
    np.testing.assert_allclose(jax.jit(f)(line), np.fft.fft(np.arange(8)), rtol=1e-4, atol=1e-4)


@of_eight
def test_a_product_adds_up_over_the_axes_that_its_sum_is_split_along() -> None:
    seen: list[Any] = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        a, b = (s.sharding for s in args)
        axis = a.spec[1]
        seen.append((a.spec, b.spec, result.sharding.spec))

        def parts(u: Any, v: Any) -> Any:
            assert u.shape == (8, 2) and v.shape == (2, 8)
            return lax.psum(u @ v, axis)

        return mesh, parts, result.sharding, (a, NamedSharding(mesh, P(axis)))

    f = custom_partitioning(lambda a, b: a @ b)
    f.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    g = jax.jit(f)
    args = split(X, None, "x"), split(X.T, "x")
    np.testing.assert_allclose(g(*args), X @ X.T)
    assert seen == [(P(None, "x"), P("x", None), P(None, None))]
    text = g.lower(*args).compile().as_text()
    assert "all-reduce" in text and "all-gather" not in text


@of_eight
def test_factors_that_need_replication_are_made_whole_by_partition() -> None:
    def rows(mesh: Any, args: Any, result: Any) -> Any:
        whole = NamedSharding(mesh, P(args[0].sharding.spec[0]))
        return mesh, lambda x: lax.cumsum(x, 1), whole, (whole,)

    f, seen = asks(rows, need_replication_factors=("j",))
    g = jax.jit(lambda a: f(a + 1) + 1)
    assert np.array_equal(g(split(X, "x", "y")), np.cumsum(X + 1, 1) + 1)
    assert seen == [(P("x", "y"), P("x", "y"))]  # as JAX asks
    assert np.array_equal(g(split(X, "x")), np.cumsum(X + 1, 1) + 1)


@of_eight
def test_where_results_are_wanted_does_not_change_what_the_rule_finds() -> None:
    f, seen = asks(tripled)
    for where in (P(), P("x"), P("x", "y")):
        g = jax.jit(f, out_shardings=NamedSharding(mesh_of(), where))
        out = g(split(X, "x", "y"))
        assert np.array_equal(out, X * 3) and out.sharding.spec == where
    assert seen == [(P("x", "y"), P("x", "y"))] * 3


@of_eight
def test_rules_change_what_was_found() -> None:
    def other(mesh: Any, args: Any, result: Any) -> Any:
        line = Mesh(mesh.devices.reshape(8), ("z",))
        rows = NamedSharding(line, P("z"))
        return line, lambda x: x * 0 + lax.axis_index("z"), rows, (rows,)

    f, _ = asks(other)
    out = jax.jit(f)(split(X, "x", "y"))
    assert np.array_equal(out, np.tile(np.arange(8.0), (8, 1)).T)


@of_eight
def test_trees_static_arguments_and_keywords() -> None:
    def partition(n: Any, mesh: Any, args: Any, result: Any) -> Any:
        def parts(t: Any, y: Any) -> Any:
            return {"sum": t["a"] + n * y}, (t["b"] * 3,)

        rows, b = args[0]["a"].sharding, args[0]["b"].sharding
        return mesh, parts, ({"sum": rows}, (b,)), ({"a": rows, "b": b}, rows)

    def f(t: Any, n: int, y: Any = 1.0) -> Any:
        return {"sum": t["a"] + n * y}, (t["b"] * 2,)

    g = custom_partitioning(f, static_argnums=(1,))
    told: list[int] = []

    def rule(n: int, mesh: Any, ins: Any, outs: Any) -> str:
        told.append(n)
        return "i j, k, i j -> i j, k"

    g.def_partition(partition, sharding_rule=rule)
    tree = {"a": split(X, "x"), "b": split(np.arange(8.0, dtype=np.float32), "y")}
    total, (b,) = jax.jit(lambda t, y: g(t, y=y, n=3))(tree, split(X, "x", "y"))
    assert np.array_equal(total["sum"], X + 3 * X) and np.array_equal(b, np.arange(8.0) * 3)
    assert set(told) == {3} and b.sharding.spec == P("y")


@of_eight
def test_collectives_and_loops_run_in_the_function_of_the_parts() -> None:
    def ring(x: Any) -> Any:
        return lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)])

    def mean(x: Any) -> Any:
        return lax.scan(lambda c, _: (lax.pmean(c, ("x", "y")), None), x, None, length=2)[0]

    def first(x: Any) -> Any:
        return lax.cond(lax.axis_index("x") == 0, lambda v: v, jnp.zeros_like, x)

    blocks = X.reshape(4, 2, 2, 4)
    averaged = np.tile(blocks.mean((0, 2)), (4, 2))
    cases = ((ring, np.roll(X, 2, 0)), (mean, averaged), (first, X * (np.arange(8) < 2)[:, None]))
    for parts, wanted in cases:
        f, _ = asks(lambda m, a, r, g=parts: (m, jax.jit(g), r.sharding, (a[0].sharding,)))
        np.testing.assert_allclose(jax.jit(f)(split(X, "x", "y")), wanted)


@of_eight
def test_odd_operands_and_results() -> None:
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh_of(), P("x")))
    shapes: list[Any] = []

    def words(mesh: Any, args: Any, result: Any) -> Any:
        shapes.append((args[0].shape, args[0].dtype))
        return mesh, lambda w: w + 1, result.sharding, (args[0].sharding,)

    f = custom_partitioning(jax.random.key_data)
    f.def_partition(words, sharding_rule="i j -> i j")
    assert np.array_equal(jax.jit(f)(keys), jax.random.key_data(keys) + 1)
    assert shapes == [((8, 2), np.uint32)]  # keys are their words there, as in JAX
    g, seen = asks(tripled)
    out = jax.jit(lambda x: g(x[:7]))(split(X, "x"))  # parts that are not equal
    assert np.array_equal(out, X[:7] * 3)
    for dtype in (jnp.bfloat16, jnp.int4, np.complex64):
        x = jnp.asarray(X % 2).astype(dtype)
        out = jax.jit(g)(split(x, "x", "y")).astype(np.complex64)
        assert np.array_equal(out, X % 2 * 3)
    none = custom_partitioning(lambda x: ())
    none.def_partition(lambda *a: a, sharding_rule="i j ->")
    assert np.array_equal(jax.jit(lambda x: (none(x), x)[1])(split(X, "x")), X)


@of_eight
def test_typed_meshes_and_constraints_name_the_devices() -> None:
    f, seen = asks(tripled)
    typed = mesh_of(kind=AxisType.Explicit)
    x = jax.device_put(X, NamedSharding(typed, P("x")))
    assert np.array_equal(jax.jit(f)(x), X * 3) and seen[-1][0] == P("x", None)
    where = NamedSharding(mesh_of(), P("y"))
    g = jax.jit(lambda v: f(lax.with_sharding_constraint(v + 1, where)) * 1)
    assert np.array_equal(g(X), (X + 1) * 3) and seen[-1][0] == P("y", None)


@of_eight
def test_shardings_may_be_left_as_tiles() -> None:
    seen: list[Any] = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        seen.append((args[0].sharding, result.sharding))
        return mesh, lambda x: x * 3, result.sharding, (args[0].sharding,)

    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(partition, sharding_rule="i j -> i j", decode_shardings=False)
    for spec in (("x", "y"), ("y",), ()):
        assert np.array_equal(jax.jit(f)(split(X, *spec)), X * 3)
    assert [str(s[0]) for s in seen] == [
        "GSPMDSharding({devices=[4,2]<=[8]}, memory_kind=device)",
        "GSPMDSharding({devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}, memory_kind=device)",
        "GSPMDSharding({replicated}, memory_kind=device)",
    ]


@pytest.fixture
def before_shardy() -> Any:
    jax.config.update("calque_use_shardy_partitioner", False)
    yield
    jax.config.update("calque_use_shardy_partitioner", True)


def rows_alone() -> tuple[Any, list[Any]]:
    """A transform of rows with the rules that XLA asks before Shardy; what it was asked."""
    seen: list[Any] = []

    def kept(s: Any) -> Any:
        return NamedSharding(s.mesh, P(s.spec[0], None))

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        seen.append(("partition", args[0].sharding.spec, result.sharding.spec))
        return mesh, jnp.fft.fft, kept(args[0].sharding), (kept(args[0].sharding),)

    def infer(mesh: Any, args: Any, result: Any) -> Any:
        seen.append(("infer", args[0].sharding.spec, result.shape))
        return kept(args[0].sharding)

    def propagate(mesh: Any, wanted: Any) -> Any:
        seen.append(("propagate", wanted.sharding.spec))
        return kept(wanted.sharding)

    f = custom_partitioning(lambda x: jnp.fft.fft(x))
    f.def_partition(partition, infer, propagate)
    return f, seen


@of_eight
def test_before_shardy_rules_pass_shardings_on(before_shardy: None) -> None:
    f, seen = rows_alone()
    where = NamedSharding(mesh_of(), P("y", P.UNCONSTRAINED))
    double = jax.shard_map(
        lambda v: v * 2, mesh=mesh_of(), in_specs=P("x", "y"), out_specs=P("x", "y")
    )
    cases: tuple[tuple[Any, Any, Any], ...] = (
        (lambda x: f(x) + 1, np.fft.fft(X) + 1, P("x")),
        (lambda x: f(double(x)), np.fft.fft(X * 2), P("x")),
        (lambda x: lax.with_sharding_constraint(f(x), where), np.fft.fft(X), P("y")),
    )
    for run, wanted, spec in cases:
        seen.clear()
        out = jax.jit(run)(split(X, "x", "y"))
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
        assert out.sharding.spec == spec
        assert ("partition", P("x", "y"), P(spec[0], None)) in seen
    assert ("infer", P("x", "y"), (8, 8)) in seen or spec == P("y")
    out = jax.jit(f, out_shardings=NamedSharding(mesh_of(), P("y")))(split(X, "x", "y"))
    np.testing.assert_allclose(out, np.fft.fft(X), rtol=1e-4, atol=1e-4)
    assert out.sharding.spec == P("y") and ("propagate", P("y", None)) in seen


@of_eight
def test_before_shardy_others_follow(before_shardy: None) -> None:
    f, _ = rows_alone()
    shape = jax.ShapeDtypeStruct((8, 8), np.float32)
    calls: list[Any] = []

    def host(v: Any) -> Any:
        calls.append(v.shape)
        return v + 1

    g = jax.jit(lambda x: (f(jax.pure_callback(host, shape, x)), jnp.linalg.cholesky(x @ x.T)))
    x = split(np.eye(8, dtype=np.float32) * 2, "x", "y")
    ours, root = g(x)
    np.testing.assert_allclose(ours, np.fft.fft(np.eye(8) * 2 + 1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(root, np.eye(8) * 2, atol=1e-5)
    assert calls == [(8, 8)]


@of_eight
@pytest.mark.parametrize("name", ["infer_sharding_from_operands", "propagate_user_sharding"])
def test_before_shardy_errors_end_no_process(name: str, before_shardy: None) -> None:
    f, _ = rows_alone()
    g = jax.jit(f, out_shardings=NamedSharding(mesh_of(), P("y")))
    setattr(f, name, lambda *a: {}["mine"])
    with pytest.raises(KeyError, match="mine"):
        g(split(X, "x", "y"))
    h = jax.jit(lambda x: f(x), out_shardings=NamedSharding(mesh_of(), P("y")))
    setattr(f, name, lambda *a: None)
    with pytest.raises(ValueError, match=r"must return Sharding.* got None"):
        h(split(X, "x", "y"))


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "shapes": (
        lambda m, a, r: (m, lambda x: x[:1], r.sharding, (a[0].sharding,)),
        ValueError,
        r"custom_partitioning at .*Mismatch in result shapes.*\(f32\[1,4\]\).*\(f32\[2,4\]\)",
    ),
    "dtypes": (
        lambda m, a, r: (m, lambda x: x.astype(int), r.sharding, (a[0].sharding,)),
        ValueError,
        r"Mismatch in result shapes.*\(i32\[2,4\]\)",
    ),
    "results": (
        lambda m, a, r: (m, lambda x: (x, x), r.sharding, (a[0].sharding,)),
        ValueError,
        r"Mismatch in result shapes.*\(f32\[2,4\], f32\[2,4\]\)",
    ),
    "specs": (
        lambda m, a, r: (m, lambda x: x, P("x"), (a[0].sharding,)),
        ValueError,
        r"must return Sharding.*results, got P\('x',\)",
    ),
    "tree": (
        lambda m, a, r: (m, lambda x: x, r.sharding, a[0].sharding),
        ValueError,
        r"in the structure of the arguments",
    ),
    "three": (lambda m, a, r: (m, lambda x: x, r.sharding), TypeError, "must return a mesh, a fu"),
    "mesh": (
        lambda m, a, r: (None, lambda x: x, r.sharding, (a[0].sharding,)),
        ValueError,
        "a mesh of 8 devices",
    ),
    "function": (
        lambda m, a, r: (m, 3, r.sharding, (a[0].sharding,)),
        TypeError,
        "must return a function, got 3",
    ),
    "raises": (lambda m, a, r: {}["mine"], KeyError, "mine"),
    "tracing raises": (
        lambda m, a, r: (m, lambda x: x @ x, r.sharding, (a[0].sharding,)),
        TypeError,
        "incompatible shapes",
    ),
    "host": (
        lambda m, a, r: (
            m,
            lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
            r.sharding,
            (a[0].sharding,),
        ),
        NotImplementedError,
        r"calls Python on the host \(pure_callback\)",
    ),
}


@of_eight
@pytest.mark.parametrize("name", WRONG)
def test_errors_of_rules_reach_the_user(name: str) -> None:
    answer, kind, why = WRONG[name]
    f, _ = asks(answer)
    with pytest.raises(kind, match=why):
        jax.jit(f)(split(X, "x", "y"))
    g, _ = asks(tripled)  # and the next program is as good as ever
    assert np.array_equal(jax.jit(g)(split(X, "x", "y")), X * 3)


@of_eight
def test_rules_are_asked_under_the_flags_of_who_compiles() -> None:
    threads: list[int] = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        threads.append(threading.get_ident())

        def parts(x: Any) -> Any:
            assert jax.config.read("calque_enable_x64") and jnp.arange(2).dtype == np.int64
            return x * 3

        return mesh, parts, result.sharding, (args[0].sharding,)

    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(partition, sharding_rule="i j -> i j")
    with jax.enable_x64(True):
        out = jax.jit(f)(split(X.astype(np.float64), "x", "y"))
        assert out.dtype == np.float64 and np.array_equal(out, X * 3)
    assert len(threads) == 1 and not jax.config.read("calque_enable_x64")


@of_eight
def test_programs_keep_their_rules_as_long_as_they_are_there() -> None:
    jax.clear_caches()
    gc.collect()
    before = len(asked_about)
    f, _ = asks(tripled)
    g = jax.jit(f)
    g(split(X, "x"))
    assert len(asked_about) > before
    del f, g
    jax.clear_caches()
    gc.collect()
    assert len(asked_about) == before


def test_programs_of_others_are_told_apart() -> None:
    shape = jaxlib.jaxlib().client.Shape.array_shape(np.dtype("float32"), (8, 8))
    wanted = jaxlib.hlo_tiles(tiles_of(NamedSharding(jax.make_mesh((1,), ("x",)), P("x")), 2))
    assert propagated(wanted, shape, b"no such key") is wanted
    assert inferred([shape], [wanted], shape, b"no such key").is_replicated()
    with pytest.raises(KeyError, match="was not lowered in this process"):
        partitioned([shape], [wanted], shape, wanted, b"no such key")


@of_eight
def test_programs_with_rules_are_not_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "calque.machine.code.diskcache.put", lambda key, kind, data: written.append(kind)
    )
    f, _ = asks(tripled)
    jax.jit(f)(split(X, "x", "y"))
    assert "xla" not in written


@of_eight
def test_on_own_devices_it_is_said_that_rules_are_not_asked() -> None:
    f, seen = asks(tripled)
    x = jax.device_put(X, NamedSharding(mesh_of("cpu"), P("x")))
    with pytest.warns(UserWarning, match="rules beside partition are kept and not asked"):
        out = jax.jit(f)(x)
    assert np.array_equal(out, X * 2) and out.sharding.spec == P("x") and not seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)
        jax.jit(f)(jnp.asarray(X))
        jax.jit(f)(split(X, "x"))
