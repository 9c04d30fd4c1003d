"""Running primitives one at a time."""

import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.extend.core import Primitive
from calque.interpreters import mlir
from calque.interpreters.xla import apply_primitive


def test_calques_own_are_bound() -> None:
    assert apply_primitive(lax.neg_p, jnp.ones(2)).tolist() == [-1, -1]
    params = {"axes": (0,), "out_sharding": None}
    assert float(apply_primitive(lax.reduce_sum_p, jnp.ones(3), **params)) == 3
    assert float(calque.grad(lambda x: apply_primitive(lax.sin_p, x))(0.0)) == 1


def test_those_of_libraries_run_what_compiled_code_runs() -> None:
    p = Primitive("applied_by_a_test")
    p.def_abstract_eval(lambda x, *, by: x)
    p.def_impl(lambda x, *, by: apply_primitive(p, x, by=by))
    with pytest.raises(NotImplementedError, match=r"Lowering rule .* not found for platform cpu"):
        p.bind(1.0, by=2.0)  # which would ask itself for ever
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: x * by, multiple_results=False))
    assert float(p.bind(3.0, by=2.0)) == 6
