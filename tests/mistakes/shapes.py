"""Mistakes with shapes, indexes and products."""

from typing import Any

import numpy as np

from tests.mistakes.table import mistake


@mistake("better", "add", "(3,), (4,)", "reshape an operand")
def add_of_two_lengths(jax: Any, jnp: Any) -> None:
    jnp.ones(3) + jnp.ones(4)


@mistake("better", "add", "(3,), (4,)", "reshape an operand")
def add_of_two_lengths_under_jit(jax: Any, jnp: Any) -> None:
    def loss(params, batch):
        return (params["w"] + batch).sum()

    jax.jit(loss)({"w": jnp.ones(3)}, jnp.ones(4))


@mistake("better", "where", "(2,), (3,), (4, 3)", "reshape an operand")
def where_of_three_shapes(jax: Any, jnp: Any) -> None:
    jnp.where(jnp.ones(2) > 0, jnp.ones(3), jnp.ones((4, 3)))


@mistake("better", "add", "(3, 1), (3,)", "jnp.add broadcasts")
def lax_add_of_two_shapes(jax: Any, jnp: Any) -> None:
    jax.lax.add(jnp.ones((3, 1)), jnp.ones(3))


@mistake("better", "lax.add", "float32, int32", "convert_element_type")
def lax_add_of_two_dtypes(jax: Any, jnp: Any) -> None:
    jax.lax.add(jnp.ones(3), jnp.arange(3))


@mistake("better", "matmul", "(2, 3) and (2, 3)", "axis 1 of the first", "axis 0 of the second")
def product_of_two_lengths(jax: Any, jnp: Any) -> None:
    jnp.ones((2, 3)) @ jnp.ones((2, 3))


@mistake("better", "matmul", "(2, 3) and ()", "use multiply")
def product_with_a_number(jax: Any, jnp: Any) -> None:
    jnp.ones((2, 3)) @ 2.0


@mistake("better", "dot", "(4, 5) and (4, 5)", "axis 1 of the first")
def dot_of_two_lengths(jax: Any, jnp: Any) -> None:
    jnp.dot(jnp.ones((4, 5)), jnp.ones((4, 5)))


@mistake("better", "'j'", "'ij,jk->ik'", "(2, 3), (4, 5)")
def einsum_of_two_sizes(jax: Any, jnp: Any) -> None:
    jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))


@mistake("better", "'q'", "'ij,jk->iq'")
def einsum_with_an_unknown_letter(jax: Any, jnp: Any) -> None:
    jnp.einsum("ij,jk->iq", jnp.ones((2, 3)), jnp.ones((3, 5)))


@mistake("better", "'ijk'", "'ijk->ij'", "(2, 3)")
def einsum_of_another_rank(jax: Any, jnp: Any) -> None:
    jnp.einsum("ijk->ij", jnp.ones((2, 3)))


@mistake("better", "2 in 'ij,jk->ik'", "operands, 1")
def einsum_without_an_operand(jax: Any, jnp: Any) -> None:
    jnp.einsum("ij,jk->ik", jnp.ones((2, 3)))


@mistake("better", "tensordot", "(2, 3) and (4, 5)", "axis 1 of the first")
def tensordot_of_two_sizes(jax: Any, jnp: Any) -> None:
    jnp.tensordot(jnp.ones((2, 3)), jnp.ones((4, 5)), axes=1)


@mistake("better", "(6,)", "(4, 2)", "size 8", "-1 stands for")
def reshape_to_another_size(jax: Any, jnp: Any) -> None:
    jnp.arange(6).reshape(4, 2)


@mistake("equal", "one unknown", "(-1, -1)")
def reshape_with_two_unknown_sizes(jax: Any, jnp: Any) -> None:
    jnp.arange(6).reshape(-1, -1)


@mistake("equal", "(7,)", "(2, -1)", "7 is not a multiple of 2")
def reshape_that_leaves_a_rest(jax: Any, jnp: Any) -> None:
    jnp.arange(7).reshape(2, -1)


@mistake("better", "(3.0, 2)", "// instead of /")
def reshape_to_a_float(jax: Any, jnp: Any) -> None:
    jnp.arange(6).reshape(6 / 2, 2)


@mistake("equal", "1D sequences")
def reshape_to_a_traced_size(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x, n: x.reshape(n, -1).sum(axis=1))(jnp.arange(6), (2, 2))


@mistake("better", "(5.0,)", "// instead of /")
def a_shape_of_floats(jax: Any, jnp: Any) -> None:
    jnp.zeros((10 / 2,))


@mistake("equal", "non-negative", "(2, -3)")
def a_negative_size(jax: Any, jnp: Any) -> None:
    jnp.zeros((2, -3))


@mistake("equal", "zeros(3, 4)", "zeros((3, 4))")
def two_sizes_as_two_arguments(jax: Any, jnp: Any) -> None:
    jnp.zeros(3, 4)


@mistake("equal", "dimension 0", "(2, 3), (2, 4)")
def concatenate_of_two_widths(jax: Any, jnp: Any) -> None:
    jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])


@mistake("better", "numbers of dimensions", "(2, 3), (3,)", "x[None]")
def concatenate_of_two_ranks(jax: Any, jnp: Any) -> None:
    jnp.concatenate([jnp.ones((2, 3)), jnp.ones(3)])


@mistake("better", "jnp.concatenate([x, y])")
def concatenate_without_a_list(jax: Any, jnp: Any) -> None:
    jnp.concatenate(jnp.ones(3), jnp.ones(3))


@mistake("equal", "at least one array")
def concatenate_of_nothing(jax: Any, jnp: Any) -> None:
    jnp.concatenate([])


@mistake("better", "same shape", "(3,), (4,)", "concatenate joins")
def stack_of_two_shapes(jax: Any, jnp: Any) -> None:
    jnp.stack([jnp.ones(3), jnp.ones(4)])


@mistake("equal", "inhomogeneous shape")
def a_ragged_list(jax: Any, jnp: Any) -> None:
    jnp.array([[1, 2], [3]])


@mistake("better", "axis 2", "dimension 2", "jnp.sum has 2 dimensions: its axes are 0 to 1")
def an_axis_too_many(jax: Any, jnp: Any) -> None:
    jnp.sum(jnp.ones((2, 3)), axis=2)


@mistake("equal", "'axis'", "(0, -2)")
def an_axis_twice(jax: Any, jnp: Any) -> None:
    jnp.sum(jnp.ones((2, 3)), axis=(0, -2))


@mistake("better", "axis must be an integer", "1.0")
def an_axis_that_is_a_float(jax: Any, jnp: Any) -> None:
    jnp.sum(jnp.ones((2, 3)), axis=1.0)


@mistake("better", "argument axis", "shapes.py", "static_argnums")
def a_traced_axis(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x, axis: jnp.sum(x, axis=axis))(jnp.ones((2, 3)), 1)


@mistake("better", "(1, 0)", "(2, 3, 4)", "each of its 3 axes once")
def transpose_with_too_few_axes(jax: Any, jnp: Any) -> None:
    jnp.transpose(jnp.ones((2, 3, 4)), (1, 0))


@mistake("better", "shape=(2, 3)", "(0,)", "only axes of size 1")
def squeeze_of_a_size(jax: Any, jnp: Any) -> None:
    jnp.squeeze(jnp.ones((2, 3)), axis=0)


@mistake("better", "size 7", "3 parts")
def split_into_unequal_parts(jax: Any, jnp: Any) -> None:
    jnp.split(jnp.arange(7), 3)


@mistake("equal", "(3,)", "(2, 4)")
def broadcast_to_another_size(jax: Any, jnp: Any) -> None:
    jnp.broadcast_to(jnp.ones(3), (2, 4))


@mistake("equal", "pad_width", "(2, 2)")
def pad_of_another_rank(jax: Any, jnp: Any) -> None:
    jnp.pad(jnp.ones((2, 3)), [(1, 1), (1, 1), (1, 1)])


@mistake("better", "max", "no identity", "`initial`")
def maximum_of_nothing(jax: Any, jnp: Any) -> None:
    jnp.max(jnp.zeros((0, 3)), axis=0)


@mistake("better", "lhs feature dimension 3", "f32[1,3,8,8]", "f32[4,5,3,3]")
def convolution_of_other_channels(jax: Any, jnp: Any) -> None:
    jax.lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 5, 3, 3)), (1, 1), "SAME")


@mistake("equal", "dynamic_slice", "(3,)", "(5,)")
def dynamic_slice_larger_than_the_array(jax: Any, jnp: Any) -> None:
    jax.lax.dynamic_slice(jnp.ones(3), (0,), (5,))


@mistake("equal", "1-dimensional", "2 were indexed")
def too_many_indexes(jax: Any, jnp: Any) -> None:
    jnp.ones(3)[0, 1]


@mistake("better", "float32", "value 2.0")
def an_index_that_is_a_float(jax: Any, jnp: Any) -> None:
    jnp.ones(3)[len("abcd") / 2]


@mistake("better", "'loss'", "no named fields")
def an_index_that_is_text(jax: Any, jnp: Any) -> None:
    jnp.ones(3)["loss"]


@mistake("better", "arr[array(seq)]", "[0, 1]")
def an_index_that_is_a_list(jax: Any, jnp: Any) -> None:
    jnp.ones(3)[[0, 1]]


@mistake("better", "float32", "[0. 1.]")
def an_array_of_floats_as_index(jax: Any, jnp: Any) -> None:
    jnp.ones(3)[jnp.array([0.0, 1.0])]


@mistake("equal", "(2,)", "(3,)")
def a_mask_of_another_length(jax: Any, jnp: Any) -> None:
    jnp.ones(3)[jnp.array([True, False])]


@mistake("equal", "0-dimensional")
def an_index_of_a_number(jax: Any, jnp: Any) -> None:
    jnp.float32(3)[0]


@mistake("better", "x.at[...]", "(3,)", "(4,)")
def an_update_of_another_shape(jax: Any, jnp: Any) -> None:
    jnp.zeros((3, 4)).at[0].set(jnp.ones(3))


@mistake("better", "x.at[...]", "str")
def an_update_of_text(jax: Any, jnp: Any) -> None:
    jnp.zeros(3).at[0].set("one")


@mistake("equal", "immutable", "x.at[idx].set(y)")
def item_assignment(jax: Any, jnp: Any) -> None:
    x = jnp.zeros(3)
    x[0] = 1.0


@mistake("equal", "immutable", "x.at[idx].set(y)")
def item_assignment_under_jit(jax: Any, jnp: Any) -> None:
    def reset(x):
        x[0] = 0.0
        return x

    jax.jit(reset)(jnp.ones(3))


@mistake("better", "'inplace'", "sort takes (a, axis=-1")
def an_update_in_place_by_a_method(jax: Any, jnp: Any) -> None:
    jnp.array([3, 1, 2]).sort(inplace=True)


@mistake("better", "square brackets", "x.at[index].set(value)")
def an_update_called_instead_of_indexed(jax: Any, jnp: Any) -> None:
    jnp.zeros(3).at(0).set(1.0)


@mistake("better", "'add'", "immutable")
def out_argument(jax: Any, jnp: Any) -> None:
    x = jnp.ones(3)
    jnp.add(x, x, out=np.zeros(3))


@mistake("equal", "0-d array")
def iteration_over_a_number(jax: Any, jnp: Any) -> None:
    list(jnp.float32(3))


@mistake("equal", "expected 2")
def unpacking_the_wrong_number(jax: Any, jnp: Any) -> None:
    a, b = jnp.arange(3)


@mistake("equal", "unsized")
def the_length_of_a_number(jax: Any, jnp: Any) -> None:
    len(jnp.float32(3))


@mistake("better", "concrete values", "limit_indices")
def a_slice_with_a_traced_end(jax: Any, jnp: Any) -> None:
    def first(x, n):
        return jax.lax.slice(x, (0,), (n,))

    jax.jit(first)(jnp.ones(5), 3)


@mistake("better", "x[mask]", "shapes.py", "vmap")
def a_mask_under_jit_with_fixed_sizes(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda x: x[x > 0])(jnp.ones((2, 3)))
