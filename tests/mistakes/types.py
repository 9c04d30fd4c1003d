"""Mistakes with dtypes, kinds of arguments and values of keywords."""

from typing import Any

import numpy as np

from tests.mistakes.table import mistake


@mistake("better", "sin", "list", "jnp.array([1.0, 2.0])")
def a_list_instead_of_an_array(jax: Any, jnp: Any) -> None:
    jnp.sin([1.0, 2.0])


@mistake("better", "add", "list", "jnp.array")
def a_list_added_to_an_array(jax: Any, jnp: Any) -> None:
    jnp.ones(2) + [1.0, 2.0]


@mistake("better", "sum", "list", "jnp.array")
def several_arrays_as_arguments_of_sum(jax: Any, jnp: Any) -> None:
    jnp.sum([jnp.ones(2), jnp.ones(2)])


@mistake("better", "add", "str", "position 1")
def text_as_an_operand(jax: Any, jnp: Any) -> None:
    jnp.add(jnp.ones(2), "1")


@mistake("equal", "+", "str")
def text_added_to_an_array(jax: Any, jnp: Any) -> None:
    jnp.ones(2) + "1"


@mistake("equal", "multiply", "NoneType", "position 0")
def none_as_an_operand(jax: Any, jnp: Any) -> None:
    jnp.multiply(None, jnp.ones(2))


@mistake("better", "object", "numeric and bool")
def an_array_of_objects(jax: Any, jnp: Any) -> None:
    jnp.asarray(np.array([1, None], object))


@mistake("equal", "'a'", "array")
def an_array_of_text(jax: Any, jnp: Any) -> None:
    jnp.asarray(["a", "b"])


@mistake("better", "datetime64[D]", "numeric and bool")
def an_array_of_dates(jax: Any, jnp: Any) -> None:
    jnp.asarray(np.array(["2020-01-01"], "M8[D]"))


@mistake("better", "'float31'", "did you mean 'float32'")
def a_dtype_that_does_not_exist(jax: Any, jnp: Any) -> None:
    jnp.ones(3, dtype="float31")


@mistake("better", "bf16", "strings are not offered")
def a_dtype_of_text(jax: Any, jnp: Any) -> None:
    jnp.ones(3, dtype=str)


@mistake("better", "1099511627776", "int32", "enable_x64")
def an_int_beyond_32_bits(jax: Any, jnp: Any) -> None:
    jnp.array(2**40)


@mistake("better", "float64 is not available", "float32", "enable_x64")
def doubles_without_x64(jax: Any, jnp: Any) -> None:
    jnp.ones(3, dtype="float64")


@mistake("better", "bitwise_and", "float32", ".astype(int)")
def bits_of_floats(jax: Any, jnp: Any) -> None:
    jnp.ones(3) & jnp.ones(3)


@mistake("better", "left_shift", "float32", ".astype(int)")
def a_shift_by_a_float(jax: Any, jnp: Any) -> None:
    jnp.arange(3) << 1.0


@mistake("better", "`-` operator", "`~` operator", "logical_not")
def the_negative_of_booleans(jax: Any, jnp: Any) -> None:
    -jnp.array([True, False])


@mistake("better", "subtract", "logical_xor", ".astype(int)")
def the_difference_of_booleans(jax: Any, jnp: Any) -> None:
    jnp.array([True]) - jnp.array([False])


@mistake("equal", "lt", "complex64")
def an_order_of_complex_numbers(jax: Any, jnp: Any) -> None:
    jax.lax.lt(jnp.ones(2, complex), jnp.ones(2, complex))


@mistake("equal", "float8_e4m3fn", "astype")
def float8_added_to_float16(jax: Any, jnp: Any) -> None:
    jnp.ones(2, "float8_e4m3fn") + jnp.ones(2, "float16")


@mistake("equal", "a.any()")
def the_truth_of_an_array(jax: Any, jnp: Any) -> None:
    if jnp.arange(3) > 1:
        pass


@mistake("equal", "ndim=1")
def a_float_of_an_array(jax: Any, jnp: Any) -> None:
    float(jnp.arange(3))


@mistake("equal", "unhashable")
def an_array_as_a_key_of_a_dict(jax: Any, jnp: Any) -> None:
    {jnp.float32(1): 2}


@mistake("equal", "arrange")
def a_misspelt_function(jax: Any, jnp: Any) -> None:
    jnp.arrange(3)


@mistake("equal", "meen")
def a_misspelt_method(jax: Any, jnp: Any) -> None:
    jnp.ones(3).meen()


@mistake("equal", "cuda")
def a_method_of_torch(jax: Any, jnp: Any) -> None:
    jnp.ones(3).cuda()


@mistake("better", "sum()", "'axes'", "Did you mean axis? sum takes (a, axis=None")
def a_misspelt_keyword(jax: Any, jnp: Any) -> None:
    jnp.sum(jnp.ones((2, 3)), axes=1)


@mistake("better", "sum()", "'keepdim'", "Did you mean keepdims")
def keepdims_as_torch_spells_it(jax: Any, jnp: Any) -> None:
    jnp.ones((2, 3)).sum(keepdim=True)


@mistake("better", "'mirror'", "'reflect'")
def an_unknown_mode_of_pad(jax: Any, jnp: Any) -> None:
    jnp.pad(jnp.ones(3), 1, mode="mirror")


@mistake("equal", "'middle'", "['left', 'right']")
def an_unknown_side_of_searchsorted(jax: Any, jnp: Any) -> None:
    jnp.searchsorted(jnp.arange(3), 1, side="middle")


@mistake("better", "'C' or 'F'", "'K'")
def an_unknown_order_of_reshape(jax: Any, jnp: Any) -> None:
    jnp.reshape(jnp.arange(6), (2, 3), order="K")


@mistake("better", "quantile", "'midpoint'", "'middle'")
def an_unknown_method_of_quantile(jax: Any, jnp: Any) -> None:
    jnp.quantile(jnp.arange(3.0), 0.5, method="middle")


@mistake("better", "'clip'", "'error'")
def an_unknown_mode_of_an_update(jax: Any, jnp: Any) -> None:
    jnp.zeros(3).at[5].set(1.0, mode="error")


@mistake("equal", "'xy' and 'ij'", "'yx'")
def an_unknown_indexing_of_meshgrid(jax: Any, jnp: Any) -> None:
    jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="yx")


@mistake("equal", "bincount", "float32")
def bins_that_fall(jax: Any, jnp: Any) -> None:
    jnp.bincount(jnp.array([0.5, 1.5]))


@mistake("better", "jnp.unique", "types.py", "size=")
def unique_without_a_size_under_vmap(jax: Any, jnp: Any) -> None:
    jax.vmap(jnp.unique)(jnp.ones((2, 3)))


@mistake("better", "jnp.arange", "types.py", "vmap", "jnp.arange(10) < n")
def arange_of_traced_numbers_under_vmap(jax: Any, jnp: Any) -> None:
    jax.vmap(lambda n: jnp.arange(n))(jnp.array([2, 3]))


@mistake("better", "axis 1", "dimension 1", "jnp.sort has one dimension")
def sort_along_an_axis_too_many(jax: Any, jnp: Any) -> None:
    jnp.sort(jnp.ones(3), axis=1)


@mistake("equal", "top_k", "k=5", "[3]")
def top_k_of_more_than_there_are(jax: Any, jnp: Any) -> None:
    jax.lax.top_k(jnp.ones(3), 5)


@mistake("better", "top_k", "k must be an integer", "1.5")
def top_k_of_a_float(jax: Any, jnp: Any) -> None:
    jax.lax.top_k(jnp.ones(3), 1.5)


@mistake("better", "window", "M, must be an integer", "got None")
def a_window_of_no_length(jax: Any, jnp: Any) -> None:
    jnp.hamming(None)


@mistake("better", "argument k of the function top_k", "static_argnums")
def top_k_of_a_traced_number(jax: Any, jnp: Any) -> None:
    jax.jit(jax.lax.top_k)(jnp.ones(3), 2)


@mistake("better", "float32[1048576,16777216]", "70368744177664 bytes")
def an_array_too_large_for_memory(jax: Any, jnp: Any) -> None:
    jnp.zeros((1 << 20, 1 << 24))


@mistake("better", "float32[4194304,4194304]", "70368744177664 bytes")
def an_array_too_large_for_memory_under_jit(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x: jnp.outer(x, x).sort(axis=0))(jnp.ones(1 << 22)).block_until_ready()
