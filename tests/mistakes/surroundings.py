"""Mistakes with devices, meshes, configuration, callbacks, checks, export and foreign functions."""

from typing import Any

import numpy as np

from tests.mistakes.table import mistake


@mistake("better", "(64, 2)", "CALQUE_NUM_CPU_DEVICES=128")
def a_mesh_of_more_devices_than_there_are(jax: Any, jnp: Any) -> None:
    jax.make_mesh((64, 2), ("data", "model"))


@mistake("equal", "axis_names", "2")
def a_mesh_of_other_names(jax: Any, jnp: Any) -> None:
    jax.make_mesh((1,), ("data", "model"))


@mistake("equal", "model", "data")
def a_partition_over_an_unknown_axis(jax: Any, jnp: Any) -> None:
    mesh = jax.make_mesh((1,), ("data",))
    jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("model"))


@mistake("equal", "`data`")
def a_partition_over_an_axis_twice(jax: Any, jnp: Any) -> None:
    mesh = jax.make_mesh((1,), ("data",))
    jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data", "data"))


@mistake("better", "device_put", "rank at least 2", "rank 1")
def a_partition_of_another_rank(jax: Any, jnp: Any) -> None:
    mesh = jax.make_mesh((1,), ("data",))
    spec = jax.sharding.PartitionSpec(None, "data")
    jax.device_put(jnp.ones(3), jax.sharding.NamedSharding(mesh, spec))


@mistake("equal", "set_mesh")
def a_partition_without_a_mesh(jax: Any, jnp: Any) -> None:
    jax.device_put(jnp.ones(3), jax.sharding.PartitionSpec("data"))


@mistake("equal", "with_sharding_constraint", "set_mesh")
def a_constraint_without_a_mesh(jax: Any, jnp: Any) -> None:
    jax.lax.with_sharding_constraint(jnp.ones(3), jax.sharding.PartitionSpec("data"))


@mistake("better", "out_sharding P()", "set_mesh", "NamedSharding")
def a_product_laid_out_without_a_mesh(jax: Any, jnp: Any) -> None:
    jnp.matmul(jnp.ones((2, 2)), jnp.ones((2, 2)), out_sharding=jax.sharding.PartitionSpec())


@mistake("better", "gpu", "Sharding", "calque.devices('gpu')[0]")
def device_put_on_text(jax: Any, jnp: Any) -> None:
    jax.device_put(jnp.ones(3), "gpu")


@mistake("better", "'data'", "array")
def device_put_of_text(jax: Any, jnp: Any) -> None:
    jax.device_put("data")


@mistake("better", "gpu0", "'cpu'")
def devices_of_an_unknown_platform(jax: Any, jnp: Any) -> None:
    jax.devices("gpu0")


@mistake("equal", "P('data', None)", "x has shape")
def shard_map_of_an_indivisible_size(jax: Any, jnp: Any) -> None:
    mesh, spec = jax.make_mesh((1,), ("data",)), jax.sharding.PartitionSpec
    f = jax.shard_map(lambda x: x, mesh=mesh, in_specs=spec("data", None), out_specs=spec("data"))
    f(jnp.ones(3))


@mistake("equal", "in_specs", "length 2")
def shard_map_with_specs_of_another_structure(jax: Any, jnp: Any) -> None:
    mesh, spec = jax.make_mesh((1,), ("data",)), jax.sharding.PartitionSpec
    specs = (spec("data"), spec("data"))
    jax.shard_map(lambda x: x, mesh=mesh, in_specs=specs, out_specs=spec())(jnp.ones(4))


@mistake("better", "set_mesh", "mesh=")
def shard_map_without_a_mesh(jax: Any, jnp: Any) -> None:
    spec = jax.sharding.PartitionSpec("data")
    jax.shard_map(lambda x: x, in_specs=spec, out_specs=spec)(jnp.ones(4))


@mistake("better", "77", "pmap of <lambda>", "CALQUE_NUM_CPU_DEVICES=77")
def pmap_over_more_than_the_devices(jax: Any, jnp: Any) -> None:
    jax.pmap(lambda x: x)(jnp.ones((77, 2)))


# ---------------------------------------------------------------- configuration


@mistake("better", "enable_x46", "calque_enable_x64")
def an_unknown_option(jax: Any, jnp: Any) -> None:
    jax.config.update("jax_enable_x46", True)


@mistake("better", "calque_enable_x64", "bool", "'yes'")
def an_option_of_another_type(jax: Any, jnp: Any) -> None:
    try:
        jax.config.update("jax_enable_x64", "yes")
    finally:
        jax.config.update("jax_enable_x64", False)


@mistake("better", "calque_numpy_rank_promotion", "'allow', 'warn', 'raise'", "'forbid'")
def an_unknown_value_of_an_option(jax: Any, jnp: Any) -> None:
    jax.config.update("jax_numpy_rank_promotion", "forbid")


@mistake("better", "calque_default_matmul_precision", "'highest'", "'best'")
def an_unknown_precision(jax: Any, jnp: Any) -> None:
    jax.config.update("jax_default_matmul_precision", "best")


@mistake("better", "calque_default_prng_impl", "'threefry2x32', 'rbg', 'unsafe_rbg'", "philox4x32")
def an_unknown_kind_of_key_as_the_default(jax: Any, jnp: Any) -> None:
    jax.config.update("jax_default_prng_impl", "philox4x32")


@mistake("equal", "add", "(2, 3) (3,)", "rank_promotion")
def ranks_promoted_where_that_is_forbidden(jax: Any, jnp: Any) -> None:
    with jax.numpy_rank_promotion("raise"):
        jnp.ones((2, 3)) + jnp.ones(3)


@mistake("better", "float32, int32", "strict", "convert explicitly")
def dtypes_promoted_where_that_is_forbidden(jax: Any, jnp: Any) -> None:
    with jax.numpy_dtype_promotion("strict"):
        jnp.ones(3) + jnp.arange(3)


@mistake("better", "sqrt", "surroundings.py", "(root)")
def a_nan_where_that_is_forbidden(jax: Any, jnp: Any) -> None:
    def root(x):
        return jnp.sqrt(x)

    with jax.debug_nans(True):
        jax.jit(root)(-1.0)


# ---------------------------------------------------------------- callbacks and checks


@mistake("better", "output 0", "float32[4]", "f32[3]")
def a_callback_of_another_shape(jax: Any, jnp: Any) -> None:
    shape = jax.ShapeDtypeStruct((3,), "float32")
    jax.block_until_ready(jax.pure_callback(lambda x: np.ones(4, "float32"), shape, 1.0))


@mistake("better", "FileNotFoundError", "data.bin")
def a_callback_that_fails(jax: Any, jnp: Any) -> None:
    def read(i):
        raise FileNotFoundError("data.bin")

    shape = jax.ShapeDtypeStruct((), "float32")
    jax.block_until_ready(jax.jit(lambda i: jax.pure_callback(read, shape, i))(1))


@mistake("better", "sin()", "type of the result stands before")
def a_callback_without_a_shape(jax: Any, jnp: Any) -> None:
    jax.pure_callback(np.sin, jnp.ones(3))


@mistake("better", "loss {loss}", "keyword argument", "debug.print")
def a_format_with_an_unknown_name(jax: Any, jnp: Any) -> None:
    jax.jit(lambda x: jax.debug.print("loss {loss}", x))(1.0)


@mistake("better")
def a_check_that_is_not_functionalised(jax: Any, jnp: Any) -> None:
    checkify = __import__(f"{jax.__name__}.experimental.checkify", fromlist=["check"])

    def root(x):
        checkify.check(x >= 0, "negative: {x}", x=x)
        return jnp.sqrt(x)

    jax.jit(root)(1.0)


@mistake("better", "negative: -1.0")
def a_check_that_fails(jax: Any, jnp: Any) -> None:
    checkify = __import__(f"{jax.__name__}.experimental.checkify", fromlist=["check"])

    def root(x):
        checkify.check(x >= 0, "negative: {x}", x=x)
        return jnp.sqrt(x)

    error, _ = checkify.checkify(root)(-1.0)
    error.throw()


@mistake("better", "scalar pred", "bool[3]", "jnp.all")
def a_check_of_many_values(jax: Any, jnp: Any) -> None:
    checkify = __import__(f"{jax.__name__}.experimental.checkify", fromlist=["check"])
    checkify.checkify(lambda x: checkify.check(x > 0, "negative"))(jnp.ones(3))


# ---------------------------------------------------------------- programs


@mistake("better", "'x'", "float32[3]", "float32[4]", "<lambda>")
def a_compiled_program_with_another_shape(jax: Any, jnp: Any) -> None:
    program = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    program(jnp.ones(4))


@mistake("better", "<lambda>", "dict", "list")
def a_compiled_program_with_another_structure(jax: Any, jnp: Any) -> None:
    program = jax.jit(lambda x: x["a"]).lower({"a": jnp.ones(3)}).compile()
    program([jnp.ones(3)])


@mistake("equal", "`jit`", "<lambda>")
def export_of_a_plain_function(jax: Any, jnp: Any) -> None:
    export = __import__(f"{jax.__name__}.export", fromlist=["export"])
    export.export(lambda x: x)(jnp.ones(3))


@mistake("better", "argument 0 of <lambda>", "f32[3]", "f32[4]")
def an_exported_program_with_another_shape(jax: Any, jnp: Any) -> None:
    export = __import__(f"{jax.__name__}.export", fromlist=["export"])
    exported = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((3,), "float32"))
    exported.call(jnp.ones(4))


@mistake("better", "no Exported")
def an_exported_program_that_is_broken(jax: Any, jnp: Any) -> None:
    export = __import__(f"{jax.__name__}.export", fromlist=["export"])
    export.deserialize(bytearray(b"no program"))


@mistake("better", "nobody_registered_this", "register_ffi_target", "pycapsule")
def an_unknown_foreign_function(jax: Any, jnp: Any) -> None:
    ffi = __import__(f"{jax.__name__}.ffi", fromlist=["ffi_call"])
    call = ffi.ffi_call("nobody_registered_this", jax.ShapeDtypeStruct((3,), "float32"))
    jax.block_until_ready(call(jnp.ones(3)))


@mistake("better", "'mistaken'", "capsule", "jax.ffi.pycapsule")
def a_foreign_function_that_is_no_capsule(jax: Any, jnp: Any) -> None:
    ffi = __import__(f"{jax.__name__}.ffi", fromlist=["ffi_call"])
    ffi.register_ffi_target("mistaken", "not a capsule", platform="cpu")


@mistake("better", "argument x of <lambda>", "'text'", "static")
def eval_shape_of_text(jax: Any, jnp: Any) -> None:
    jax.eval_shape(lambda x: x, "text")


@mistake("better", "from_dlpack", "__dlpack__", "list")
def dlpack_of_a_list(jax: Any, jnp: Any) -> None:
    dlpack = __import__(f"{jax.__name__}.dlpack", fromlist=["from_dlpack"])
    dlpack.from_dlpack([1, 2])
