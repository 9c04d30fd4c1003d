"""Functions that say how their work is split: they run as they are, and their rules are checked."""

import warnings

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


def test_where_there_are_devices_it_is_said_that_rules_are_not_asked(monkeypatch):
    monkeypatch.setattr("calque.experimental.custom_partitioning.device_count", lambda: 8)
    f = scaled()
    with pytest.warns(
        UserWarning, match=r"custom_partitioning of scale: its rules are kept and not"
    ):
        assert f(jnp.ones(2))["y"].tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(jnp.ones(2))  # once is enough
        custom_partitioning(jnp.sin)(jnp.ones(2))  # has no rules
    monkeypatch.setattr("calque.experimental.custom_partitioning.device_count", lambda: 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled()(jnp.ones(2))
