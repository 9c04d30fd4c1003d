"""Mistakes with derivatives, batching, control flow and pytrees."""

from typing import Any

import numpy as np

from tests.mistakes.table import mistake


@mistake("better", "Output of loss", "(3,)")
def grad_of_a_vector(jax: Any, jnp: Any) -> None:
    def loss(x):
        return x**2

    jax.grad(loss)(jnp.ones(3))


@mistake("better", "argument x", "int32", "allow_int")
def grad_by_an_int(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: x * 2.0)(3)


@mistake("better", "params['w']", "int32", "allow_int")
def grad_by_ints_in_a_tree(jax: Any, jnp: Any) -> None:
    def loss(params):
        return params["w"] * 1.0

    jax.grad(loss)({"w": 3, "b": 1.0})


@mistake("better", "Output of loss", "has_aux=True")
def grad_of_a_pair(jax: Any, jnp: Any) -> None:
    def loss(x):
        return x.sum(), {"accuracy": x}

    jax.grad(loss)(jnp.ones(3))


@mistake("better", "<lambda>", "pair (output, auxiliary)")
def grad_with_aux_of_one_result(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: x**2, has_aux=True)(1.0)


@mistake("equal", "int32", "vjp")
def grad_of_an_int_result(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: jnp.argmax(x))(jnp.ones(3))


@mistake("equal", "complex64", "holomorphic=True")
def grad_of_a_complex_result(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: x * 1j)(1.0)


@mistake("better", "argnums=2", "at least 3", "<lambda>")
def grad_by_an_argument_too_many(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: x, argnums=2)(1.0)


@mistake("better", "argnums", "'x'")
def grad_by_a_name(jax: Any, jnp: Any) -> None:
    jax.grad(lambda x: x, argnums="x")(1.0)


@mistake("better", "callable", "Array(", "itself")
def grad_of_a_result(jax: Any, jnp: Any) -> None:
    jax.grad(jnp.sum(jnp.ones(3)))


@mistake("better", "Output of loss", "None")
def grad_of_nothing(jax: Any, jnp: Any) -> None:
    def loss(x):
        x.sum()

    jax.grad(loss)(jnp.ones(3))


@mistake("better", "JVP", "custom_jvp", "The callback is sin")
def reverse_mode_through_while(jax: Any, jnp: Any) -> None:
    def f(x):
        x = jax.lax.while_loop(lambda x: x < 9, lambda x: x * x + 1, x)
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), "float32"), x)

    jax.grad(f)(2.0)


@mistake("better", "(3,)", "(4,)", "argument x of sin")
def jvp_with_a_tangent_of_another_shape(jax: Any, jnp: Any) -> None:
    jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(4),))


@mistake("better", "float32", "int32", "argument x of sin")
def jvp_with_a_tangent_of_another_dtype(jax: Any, jnp: Any) -> None:
    jax.jvp(jnp.sin, (jnp.ones(3),), (jnp.arange(3),))


@mistake("better", "tuples or lists", "float and float", "sin")
def jvp_without_tuples(jax: Any, jnp: Any) -> None:
    jax.jvp(jnp.sin, 1.0, 1.0)


@mistake("better", "f32[4]", "f32[3]", "function sin")
def vjp_with_a_cotangent_of_another_shape(jax: Any, jnp: Any) -> None:
    _, back = jax.vjp(jnp.sin, jnp.ones(3))
    back(jnp.ones(4))


@mistake("equal", "<lambda>", "tuple", "a pytree leaf")
def vjp_with_a_cotangent_of_another_structure(jax: Any, jnp: Any) -> None:
    _, back = jax.vjp(lambda x: (x, x), jnp.ones(3))
    back(jnp.ones(3))


@mistake("better", "function f", "defvjp", "f.defvjp(forward, backward)")
def a_custom_vjp_without_rules(jax: Any, jnp: Any) -> None:
    @jax.custom_vjp
    def f(x):
        return x

    jax.grad(f)(1.0)


@mistake("equal", "fwd rule <lambda> for function f", "pair", "1.0")
def a_custom_vjp_whose_forward_gives_one_value(jax: Any, jnp: Any) -> None:
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: x, lambda res, g: (g,))
    jax.grad(f)(1.0)


@mistake("better", "bwd rule <lambda> for function f", "tuple")
def a_custom_vjp_whose_backward_gives_no_tuple(jax: Any, jnp: Any) -> None:
    @jax.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, None), lambda res, g: (g,))
    jax.grad(f)(1.0, 2.0)


@mistake("better", "bwd rule <lambda> for function f", "output[0]", "float32[3]")
def a_custom_vjp_whose_backward_gives_another_shape(jax: Any, jnp: Any) -> None:
    @jax.custom_vjp
    def f(x):
        return x.sum()

    f.defvjp(lambda x: (x.sum(), None), lambda res, g: (g,))
    jax.grad(f)(jnp.ones(3))


@mistake("better", "function f", "defjvp", "f.defjvp(rule)")
def a_custom_jvp_without_rules(jax: Any, jnp: Any) -> None:
    @jax.custom_jvp
    def f(x):
        return x

    jax.grad(f)(1.0)


@mistake("better", "float32[3]", "rule <lambda> for function f")
def a_custom_jvp_whose_tangent_has_another_shape(jax: Any, jnp: Any) -> None:
    @jax.custom_jvp
    def f(x):
        return x.sum()

    f.defjvp(lambda primals, tangents: (primals[0].sum(), tangents[0]))
    jax.grad(f)(jnp.ones(3))


@mistake("better", "int32", "argument x of <lambda>")
def jacobian_by_ints(jax: Any, jnp: Any) -> None:
    jax.jacfwd(lambda x: x * 2.0)(jnp.arange(3))


@mistake("better", "JVP", "custom_jvp", "The callback is sin")
def a_callback_under_grad(jax: Any, jnp: Any) -> None:
    def f(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), "float32"), x)

    jax.grad(f)(1.0)


# ---------------------------------------------------------------- batching


@mistake("better", "argument image", "argument label", "in add")
def vmap_over_two_sizes(jax: Any, jnp: Any) -> None:
    def add(image, label):
        return image + label

    jax.vmap(add)(jnp.ones((3, 2)), jnp.ones((4, 2)))


@mistake("better", "axis 0", "argument factor of scale")
def vmap_over_a_number(jax: Any, jnp: Any) -> None:
    def scale(x, factor):
        return x * factor

    jax.vmap(scale)(jnp.ones(3), 2.0)


@mistake("better", "len(in_axes)=1", "len(args)=2", "None for one that is not mapped")
def vmap_with_too_few_axes(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x, y: x + y, in_axes=(0,))(jnp.ones(3), jnp.ones(3))


@mistake("better", "axis 1", "(3,)", "argument x of <lambda>")
def vmap_over_an_axis_too_many(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: x, in_axes=1)(jnp.ones(3))


@mistake("equal", "in_axes", "axis_size")
def vmap_over_nothing(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: x, in_axes=None)(jnp.ones(3))


@mistake("equal", "in_axes", "batch")
def vmap_with_axes_that_are_text(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: x, in_axes="batch")(jnp.ones(3))


@mistake("equal", "in_axes[0]", "('b',)", "('w',)")
def vmap_with_axes_of_another_structure(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda p: p["w"], in_axes=({"b": 0},))({"w": jnp.ones(3)})


@mistake("equal", "out_axes", "tuple")
def vmap_with_out_axes_of_another_structure(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: x, out_axes=(0, 0))(jnp.ones(3))


@mistake("better", "<lambda>", "out_axes", "give out_axes an axis")
def vmap_whose_result_is_not_batched(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: (x, x), out_axes=(0, None))(jnp.ones(3))


@mistake("better", "axis 0", "argument scale of <lambda>")
def vmap_of_keywords_only(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x, scale: x * scale)(x=jnp.ones(3), scale=2.0)


@mistake("better", "batch", "'rows'", "axis_name='batch'")
def psum_over_an_unknown_axis(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: jax.lax.psum(x, "batch"), axis_name="rows")(jnp.ones(3))


@mistake("better", "batch", "axis_name='batch'")
def psum_without_an_axis(jax: Any, jnp: Any) -> None:
    jax.lax.psum(jnp.ones(3), "batch")


# ---------------------------------------------------------------- control flow


@mistake("better", "carry total", "int32[]", "float32[]", "This is step")
def a_carry_that_changes_its_dtype(jax: Any, jnp: Any) -> None:
    def step(total, x):
        return total + x, x

    jax.lax.scan(step, jnp.int32(0), jnp.arange(3.0))


@mistake("better", "state['seen']", "float32[1]", "float32[2]", "This is step")
def a_carry_that_changes_its_shape(jax: Any, jnp: Any) -> None:
    def step(state, x):
        return {"seen": jnp.append(state["seen"], x), "n": state["n"] + 1}, x

    jax.lax.scan(step, {"seen": jnp.zeros(1), "n": 0}, jnp.arange(3.0))


@mistake("better", "state", "length 2", "length 3", "state[2]")
def a_carry_that_changes_its_structure(jax: Any, jnp: Any) -> None:
    def step(state, x):
        return state + (x,), x

    jax.lax.scan(step, (0.0, 1.0), jnp.arange(3.0))


@mistake("better", "pair", "float32[]", "It is step")
def a_step_that_gives_one_value(jax: Any, jnp: Any) -> None:
    def step(total, x):
        return total + x

    jax.lax.scan(step, 0.0, jnp.arange(3.0))


@mistake("better", "pair", "It is <lambda>")
def a_step_that_gives_three_values(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c, x: (c, x, x), 0.0, jnp.arange(3.0))


@mistake("better", "takes 1 positional argument", "scan calls its function with two")
def a_step_with_one_argument(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c: (c, c), 0.0, jnp.arange(3.0))


@mistake("better", "3, 4", "xs['x'], xs['y']", "<lambda>")
def scan_over_two_lengths(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c, x: (c, c), 0.0, {"x": jnp.ones(3), "y": jnp.ones(4)})


@mistake("better", "4", "[3]", "Leave length out")
def scan_of_another_length(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c, x: (c, c), 0.0, jnp.ones(3), length=4)


@mistake("better", "xs is a scalar", "<lambda>")
def scan_over_a_number(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c, x: (c, c), 0.0, 3.0)


@mistake("better", "`length`", "length=n")
def scan_without_a_length(jax: Any, jnp: Any) -> None:
    jax.lax.scan(lambda c, x: (c, c), 0.0, None)


@mistake("better", "cond_fun", "int32[]", "It is <lambda>")
def while_with_a_condition_that_is_no_bool(jax: Any, jnp: Any) -> None:
    jax.lax.while_loop(lambda x: x, lambda x: x - 1, 3)


@mistake("better", "cond_fun", "bool[3]", "It is <lambda>")
def while_with_a_condition_of_many(jax: Any, jnp: Any) -> None:
    jax.lax.while_loop(lambda x: x > 0, lambda x: x - 1, jnp.arange(3))


@mistake("better", "carry x", "int32[]", "float32[]", "This is <lambda>")
def while_whose_body_changes_the_dtype(jax: Any, jnp: Any) -> None:
    jax.lax.while_loop(lambda x: x < 9, lambda x: x * 1.5, jnp.int32(3))


@mistake("better", "state['i']", "NoneType", "This is body")
def while_whose_body_gives_nothing(jax: Any, jnp: Any) -> None:
    def body(state):
        state["i"] = state["i"] + 1

    jax.lax.while_loop(lambda state: state["i"] < 3, body, {"i": 0})


@mistake("better", "takes 1 positional argument", "fori_loop calls its function with two")
def fori_loop_with_one_argument(jax: Any, jnp: Any) -> None:
    jax.lax.fori_loop(0, 3, lambda x: x + 1, 0.0)


@mistake("better", "int32 and float32", "int(...)")
def fori_loop_to_a_float(jax: Any, jnp: Any) -> None:
    jax.lax.fori_loop(0, 3.0, lambda i, x: x + 1, 0.0)


@mistake("equal", "true_fun", "float32[3]", "int32[3]")
def branches_of_two_dtypes(jax: Any, jnp: Any) -> None:
    jax.lax.cond(True, lambda x: x, lambda x: x.astype(int), jnp.ones(3))


@mistake("equal", "both at", "one at", "['grad']", "float32[1]")
def branches_of_two_shapes(jax: Any, jnp: Any) -> None:
    def both(x):
        return {"loss": x.sum(), "grad": x}

    def one(x):
        return {"loss": x.sum(), "grad": x[:1]}

    jax.lax.cond(True, both, one, jnp.ones(3))


@mistake("better", "true_fun", "tuple", "no counterpart")
def branches_of_two_structures(jax: Any, jnp: Any) -> None:
    jax.lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)


@mistake("better", "float and float", "jnp.where", "lambda: value")
def a_branch_that_is_a_value(jax: Any, jnp: Any) -> None:
    jax.lax.cond(True, 1.0, 2.0)


@mistake("better", "scalar", "(3,)", "jnp.where")
def a_condition_of_many(jax: Any, jnp: Any) -> None:
    jax.lax.cond(jnp.ones(3) > 0, lambda: 1, lambda: 2)


@mistake("better", "takes 0 positional arguments", "cond calls each branch")
def a_branch_without_its_operand(jax: Any, jnp: Any) -> None:
    jax.lax.cond(True, lambda: 1.0, lambda: 2.0, 3.0)


@mistake("better", "1.0", "float32", "astype(int)")
def switch_by_a_float(jax: Any, jnp: Any) -> None:
    jax.lax.switch(1.0, [lambda: 1, lambda: 2])


@mistake("better", "Empty branch", "switch needs")
def switch_without_branches(jax: Any, jnp: Any) -> None:
    jax.lax.switch(0, [])


@mistake("better", "associative_scan", "float32[]", "float32[2]")
def associative_scan_of_another_shape(jax: Any, jnp: Any) -> None:
    jax.lax.associative_scan(lambda a, b: (a + b).sum(), jnp.ones(5))


# ---------------------------------------------------------------- pytrees


@mistake("equal", "tree_map tree", "b")
def tree_map_of_two_structures(jax: Any, jnp: Any) -> None:
    jax.tree.map(lambda p, g: p - g, {"w": 1.0, "b": 2.0}, {"w": 1.0})


@mistake("equal", "tree['layers']", "length 2", "length 1")
def tree_map_of_two_lengths(jax: Any, jnp: Any) -> None:
    jax.tree.map(lambda p, g: p - g, {"layers": [1.0, 2.0]}, {"layers": [1.0]})


@mistake("better", "dict", "function first")
def tree_map_with_the_arguments_turned_around(jax: Any, jnp: Any) -> None:
    jax.tree.map({"w": 1.0}, lambda x: x + 1)


@mistake("equal", "expected 2, got 1")
def unflatten_with_too_few_leaves(jax: Any, jnp: Any) -> None:
    structure = jax.tree.structure({"w": 1.0, "b": 2.0})
    jax.tree.unflatten(structure, [1.0])


@mistake("equal", "Duplicate", "Box")
def a_class_registered_twice(jax: Any, jnp: Any) -> None:
    class Box:
        pass

    for _ in range(2):
        jax.tree_util.register_pytree_node(Box, lambda b: ((), None), lambda *_: Box())


@mistake("better")
def keys_of_a_dict_that_do_not_compare(jax: Any, jnp: Any) -> None:
    jax.tree.leaves({"w": 1.0, 3: 2.0})


@mistake("better", "argument p of <lambda>", "Params", "register_dataclass")
def a_dataclass_that_is_not_registered(jax: Any, jnp: Any) -> None:
    import dataclasses

    @dataclasses.dataclass
    class Params:
        w: Any

    jax.grad(lambda p: (p.w**2).sum())(Params(jnp.ones(3)))


@mistake("better", "unravel", "(3,)", "(4,)")
def ravel_and_a_vector_of_another_length(jax: Any, jnp: Any) -> None:
    _, unravel = jax.flatten_util.ravel_pytree({"w": jnp.ones(3)})
    unravel(jnp.ones(4))
