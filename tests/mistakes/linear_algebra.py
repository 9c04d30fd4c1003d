"""Mistakes with linear algebra, transforms, SciPy's functions, pictures and networks."""

from typing import Any

from tests.mistakes.table import mistake


@mistake("better", "inv()", "(2, 3)", "square matrix")
def the_inverse_of_a_rectangle(jax: Any, jnp: Any) -> None:
    jnp.linalg.inv(jnp.ones((2, 3)))


@mistake("better", "cholesky()", "(3,)", "square matrix")
def cholesky_of_a_vector(jax: Any, jnp: Any) -> None:
    jnp.linalg.cholesky(jnp.ones(3))


@mistake("better", "solve", "(3, 3)", "(4,)", "3 columns")
def solve_of_two_sizes(jax: Any, jnp: Any) -> None:
    jnp.linalg.solve(jnp.eye(3), jnp.ones(4))


@mistake("better", "det()", "(2, 3)", "square matrix")
def the_determinant_of_a_rectangle(jax: Any, jnp: Any) -> None:
    jnp.linalg.det(jnp.ones((2, 3)))


@mistake("better", "eigh()", "(2, 3)", "square matrix")
def eigenvalues_of_a_rectangle(jax: Any, jnp: Any) -> None:
    jnp.linalg.eigh(jnp.ones((2, 3)))


@mistake("better", "'l2'", "'fro', 'nuc'")
def an_unknown_norm(jax: Any, jnp: Any) -> None:
    jnp.linalg.norm(jnp.ones((2, 3)), ord="l2")


@mistake("better", "'economic'", "'reduced', 'complete'")
def qr_of_an_unknown_mode(jax: Any, jnp: Any) -> None:
    jnp.linalg.qr(jnp.ones((3, 2)), mode="economic")


@mistake("better", "cho_solve", "(3, 3)", "need 3 rows")
def cho_solve_of_two_sizes(jax: Any, jnp: Any) -> None:
    jax.scipy.linalg.cho_solve((jnp.eye(3), True), jnp.ones(4))


@mistake("better", "solve_triangular()", "(2, 3)", "square matrix")
def triangular_solve_of_a_rectangle(jax: Any, jnp: Any) -> None:
    jax.scipy.linalg.solve_triangular(jnp.ones((2, 3)), jnp.ones(2))


@mistake("better", "axis 1", "dimension 1", "jnp.fft.fft has one dimension")
def fft_along_an_axis_too_many(jax: Any, jnp: Any) -> None:
    jnp.fft.fft(jnp.ones(4), axis=1)


@mistake("better", "fft.fft", "n must be positive", "got 0")
def fft_of_no_points(jax: Any, jnp: Any) -> None:
    jnp.fft.fft(jnp.ones(4), n=0)


@mistake("better", "norm='unitary'", "fft", '"ortho"')
def fft_with_an_unknown_norm(jax: Any, jnp: Any) -> None:
    jnp.fft.fft(jnp.ones(4), norm="unitary")


@mistake("better", "rfft", "complex64", "use jnp.fft.fft")
def rfft_of_complex_numbers(jax: Any, jnp: Any) -> None:
    jnp.fft.rfft(jnp.ones(4, complex))


@mistake("better", "axis 1", "dimension 1", "logsumexp has one dimension")
def logsumexp_along_an_axis_too_many(jax: Any, jnp: Any) -> None:
    jax.scipy.special.logsumexp(jnp.ones(3), axis=1)


@mistake("better", "convolve", "(2, 3) and (3,)")
def convolve_of_two_ranks(jax: Any, jnp: Any) -> None:
    jax.scipy.signal.convolve(jnp.ones((2, 3)), jnp.ones(3))


@mistake("better", "'circular'", "['full', 'same', 'valid']")
def convolve_of_an_unknown_mode(jax: Any, jnp: Any) -> None:
    jnp.convolve(jnp.ones(3), jnp.ones(2), mode="circular")


@mistake("better", "minimize", "'CG'", "'BFGS'")
def minimize_by_an_unknown_method(jax: Any, jnp: Any) -> None:
    jax.scipy.optimize.minimize(lambda x: (x**2).sum(), jnp.ones(2), method="CG")


@mistake("equal", "scalar-output", "(2,)")
def minimize_of_a_vector(jax: Any, jnp: Any) -> None:
    jax.scipy.optimize.minimize(lambda x: x**2, jnp.ones(2), method="BFGS")


@mistake("better", '"spline"', "lanczos3")
def resize_by_an_unknown_method(jax: Any, jnp: Any) -> None:
    jax.image.resize(jnp.ones((4, 4)), (2, 2), method="spline")


@mistake("better", "resize: shape", "(2, 2) vs (4, 4, 3)")
def resize_to_another_rank(jax: Any, jnp: Any) -> None:
    jax.image.resize(jnp.ones((4, 4, 3)), (2, 2), method="linear")


@mistake("better")
def one_hot_of_a_traced_number(jax: Any, jnp: Any) -> None:
    jax.jit(jax.nn.one_hot)(jnp.arange(3), 3)


@mistake("better", "dot_product_attention", "query heads 4", "key/value heads 3")
def attention_of_other_heads(jax: Any, jnp: Any) -> None:
    q, k = jnp.ones((2, 5, 4, 8)), jnp.ones((2, 5, 3, 8))
    jax.nn.dot_product_attention(q, k, k)


@mistake("equal", "1-dimensional", "in_axis")
def an_initializer_of_a_vector(jax: Any, jnp: Any) -> None:
    jax.nn.initializers.glorot_normal()(jax.random.key(0), (3,))


@mistake("better", "axis 1", "dimension 1", "softmax has one dimension")
def softmax_along_an_axis_too_many(jax: Any, jnp: Any) -> None:
    jax.nn.softmax(jnp.ones(3), axis=1)


@mistake("better", "map_coordinates", "coordinates must be a sequence", "1 != 2")
def map_coordinates_of_too_few(jax: Any, jnp: Any) -> None:
    jax.scipy.ndimage.map_coordinates(jnp.ones((4, 4)), [jnp.ones(2)], order=1)


@mistake("better", "interp", "(3,) and (4,)")
def interp_of_two_lengths(jax: Any, jnp: Any) -> None:
    jnp.interp(1.0, jnp.arange(3.0), jnp.arange(4.0))


# ---------------------------------------------------------------- random numbers


@mistake(
    "better",
    "normal needs a random key",
    "a shape stands in its place",
    "key = calque.random.key(seed)",
    "random.normal(key, ...)",
)
def a_key_forgotten(jax: Any, jnp: Any) -> None:
    jax.random.normal((3,))


@mistake("better", "normal needs a random key", "key = calque.random.key(seed)")
def a_seed_instead_of_a_key(jax: Any, jnp: Any) -> None:
    jax.random.normal(0, (3,))


@mistake("better", "missing 1 required positional argument: 'x'", "permutation takes (key, x")
def a_key_forgotten_before_a_size(jax: Any, jnp: Any) -> None:
    jax.random.permutation(10)


@mistake("better", "seed must be an integer", "'seed'")
def a_key_that_is_a_seed_of_numpy(jax: Any, jnp: Any) -> None:
    jax.random.key("seed")


@mistake("better", "seed must be an integer", "0.5")
def a_float_as_a_seed(jax: Any, jnp: Any) -> None:
    jax.random.key(0.5)


@mistake("equal", "normal accepts a single key", "(3,)", "vmap")
def many_keys_where_one_is_needed(jax: Any, jnp: Any) -> None:
    jax.random.normal(jax.random.split(jax.random.key(0), 3), (2,))


@mistake("better", "is reused", "linear_algebra.py", "(sample)", "random.split(key)")
def a_key_used_twice(jax: Any, jnp: Any) -> None:
    def sample(key):
        return jax.random.normal(key) + jax.random.uniform(key)

    with jax.debug_key_reuse(True):
        jax.jit(sample)(jax.random.key(0))


@mistake("better", "add", "key<fry>", "keys are no numbers")
def arithmetic_with_a_key(jax: Any, jnp: Any) -> None:
    jax.random.key(0) + 1


@mistake("equal", "1D sequences")
def a_shape_that_is_an_array(jax: Any, jnp: Any) -> None:
    jax.random.normal(jax.random.key(0), shape=jnp.ones((2, 3)))


@mistake("better", "randint", "integer dtype", "float32", "uniform draws floats")
def random_ints_of_a_float_dtype(jax: Any, jnp: Any) -> None:
    jax.random.randint(jax.random.key(0), (3,), 0, 5, dtype="float32")


@mistake("better", "normal", "float or complex dtype", "int32", "randint")
def normals_of_an_int_dtype(jax: Any, jnp: Any) -> None:
    jax.random.normal(jax.random.key(0), (3,), dtype=int)


@mistake("better", "size 5", "size 3", "replace=False", "replace=True")
def a_choice_of_more_than_there_are(jax: Any, jnp: Any) -> None:
    jax.random.choice(jax.random.key(0), 3, (5,), replace=False)


@mistake("better", "'mersenne'", "threefry2x32, rbg, unsafe_rbg")
def an_unknown_kind_of_key(jax: Any, jnp: Any) -> None:
    jax.random.key(0, impl="mersenne")


@mistake("equal", "multivariate_normal", "n=3", "(2, 2)")
def a_covariance_of_another_size(jax: Any, jnp: Any) -> None:
    jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(3), jnp.eye(2))


@mistake("better", "poisson", "(3,), (4,)", "Sizes must be equal or 1")
def a_shape_that_does_not_broadcast(jax: Any, jnp: Any) -> None:
    jax.random.poisson(jax.random.key(0), jnp.ones(3), shape=(4,))
