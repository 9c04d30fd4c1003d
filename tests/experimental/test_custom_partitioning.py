"""Functions that say how their work is split: on one device they run as they are, and their rules
are checked. tests/xla/test_partitioners.py has them asked."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from calque.sharding import NamedSharding
from calque.sharding import PartitionSpec as P


def scaled():
    @custom_partitioning
    def scale(x, factor=2.0):
        """Scales."""
        return {"y": x * factor}

    def partition(mesh, args, result):
        return mesh, scale.fun, result["y"].sharding, (args[0].sharding,)

    assert scale.def_partition(partition, sharding_rule="... i -> ... i") is partition
    return scale


def test_the_function_runs_and_is_transformed():
    f = scaled()
    x = jnp.arange(6.0).reshape(2, 3)
    assert f.__name__ == "scale" and f.__doc__ == "Scales."
    for run in (f, calque.jit(f), calque.vmap(f)):
        assert np.array_equal(run(x)["y"], 2 * x)
    assert np.array_equal(f(x, factor=3.0)["y"], 3 * x)
    assert calque.grad(lambda v: f(v)["y"].sum())(x).tolist() == [[2.0] * 3] * 2


def test_on_a_mesh_the_result_is_that_of_the_function():
    mesh = calque.make_mesh((1,), ("a",))
    x = calque.device_put(jnp.arange(4.0), NamedSharding(mesh, P("a")))
    assert calque.jit(scaled())(x)["y"].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_static_arguments_are_no_traced_values():
    f = custom_partitioning(lambda x, n: x**n, static_argnums=(1,))
    assert f(3.0, 2) == 9.0
    with pytest.raises(calque.errors.UnexpectedTracerError, match="argument 1"):
        calque.jit(f)(3.0, 2)


def test_texts_become_rules():
    f = scaled()
    f.def_partition(
        lambda *a: a,
        sharding_rule="...87 (i j) k -> ...87 (j i)",
        i=2,
        j=3,
        reduction_factors=("k",),
    )
    rule = f.sharding_rule
    assert rule.operand_mappings == ((f"{BATCHING}87", ("i", "j"), "k"),)
    assert rule.factor_sizes == {"i": 2, "j": 3} and rule.reduction_factors == ("k",)
    assert "reduction_factors=('k',)" in str(rule)
    f.def_partition(lambda *a: a, sharding_rule=rule)
    assert f.sharding_rule is rule


@pytest.mark.parametrize(
    ("rule", "said", "why"),
    [
        ("i j", {}, "one ->"),
        ("i (j k -> j", {}, "not balanced"),
        ("i (j (k)) -> j", {}, "not balanced"),
        ("i ( ) j -> j", {}, "at least two"),
        ("2i -> j", {}, "start with a letter"),
        ("i; -> j", {}, "Unknown character"),
        ("i ... -> j", {}, "at the beginning"),
        ("(i j) -> j", {}, r"sizes of factors \['i'\]"),
        ("i -> i", {"i": 3}, r"Factors \['i'\]"),
        ("i -> j", {"reduction_factors": ("k",)}, "Factor k"),
        (
            "i -> j",
            {"reduction_factors": ("i",), "permutation_factors": ("i",)},
            "one special kind",
        ),
        (lambda mesh: "i -> i", {"i": 3}, "that is a text"),
    ],
)
def test_wrong_rules_are_refused(rule, said, why):
    with pytest.raises(ValueError, match=why):
        scaled().def_partition(lambda *a: a, sharding_rule=rule, **said)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="text"):
        scaled().def_partition(lambda *a: a, sharding_rule=3)
    with pytest.raises(TypeError, match="callable"):
        scaled().def_partition("rule")
    with pytest.raises(TypeError, match="callable"):
        custom_partitioning(3)
    with pytest.raises(ValueError, match="must be a str"):
        ArrayMapping(3)
    with pytest.raises(ValueError, match="must be a str"):
        CompoundFactor("i", 3)
    with pytest.raises(ValueError, match="two factors"):
        SdyShardingRule((ArrayMapping(CompoundFactor("i")),), ())


def test_the_equation_is_printed_as_jax_prints_it():
    f = custom_partitioning(lambda x: {"y": x * x})
    f.def_partition(scaled().partition, sharding_rule="... i -> ... i")
    assert str(calque.make_jaxpr(f)(jnp.ones((2, 3)))) == (
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[2,3] = custom_partitioning[\n"
        "      call={ lambda ; c:f32[2,3]. let d:f32[2,3] = mul c c in (d,) }\n"
        "      decode_shardings=True\n"
        "      in_tree=PyTreeDef((*,))\n"
        "      infer_sharding_from_operands=None\n"
        "      out_tree=PyTreeDef({'y': *})\n"
        "      partition=<function scaled.<locals>.partition at 0xXXXXXXXXXXXX>\n"
        "      propagate_user_sharding=None\n"
        "      sharding_rule=SdyShardingRule((('…0', 'i'),), (('…0', 'i'),), {})\n"
        "      static_args=()\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_static_arguments_stand_anywhere():
    f = custom_partitioning(lambda n, x, m=3: x * n + m, static_argnums=(0, -1))
    f.def_partition(lambda *a: a, sharding_rule="i -> i")
    (e,) = calque.make_jaxpr(lambda x: f(2, x, m=5))(np.ones(2)).eqns
    assert e.params["static_args"] == (2, 5) and str(e.params["in_tree"]) == "PyTreeDef((*,))"
    assert f(2, np.ones(2)).tolist() == [5.0, 5.0]
    g = custom_partitioning(lambda x: x, static_argnums=(2,))
    with pytest.raises(ValueError, match="static_argnums has 2, and the function has 1"):
        g(1.0)


def test_keywords_become_positions_or_are_refused():
    f = custom_partitioning(lambda x, *, n: x * n)
    with pytest.raises(TypeError, match="could not be resolved to positions: n"):
        f(1.0, n=2)


def test_values_that_are_captured_are_known():
    y = jnp.arange(3.0)
    f = custom_partitioning(lambda x: x * y)
    f.def_partition(lambda *a: a, sharding_rule="i -> i")
    assert calque.jit(f)(y).tolist() == [0, 1, 4]

    def g(a):
        inner = custom_partitioning(lambda x: x * a)
        inner.def_partition(lambda *a: a, sharding_rule="i -> i")
        return inner(y)

    assert g(2.0).tolist() == [0, 2, 4]
    with pytest.raises(calque.errors.UnexpectedTracerError, match="captures a traced value"):
        calque.jit(g)(2.0)


def test_rules_that_shardy_does_not_ask_are_refused():
    f = custom_partitioning(lambda x: x)
    f.def_partition(lambda *a: a, infer_sharding_from_operands=lambda *a: a)
    with pytest.raises(NotImplementedError, match=r"\(infer_sharding_from_operands\) instead of"):
        f(1.0)
