"""The public functions that programs are drawn from: all that take arrays, by their modules'
names, so that a new function is drawn as soon as it is public."""

import importlib
import inspect
import types
from collections.abc import Iterator
from typing import Any

import calque
from tests.fuzz import forms

MODULES = (
    "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn", "scipy.special",
    "scipy.linalg", "scipy.signal", "scipy.ndimage", "scipy.integrate", "scipy.cluster.vq",
    "scipy.fft", "scipy.stats", "image", "ops",
)  # fmt: skip

REASONS = {
    "takes no arrays": """numpy.finfo numpy.iinfo numpy.can_cast numpy.promote_types numpy.isdtype
        numpy.issubdtype numpy.set_printoptions numpy.get_printoptions numpy.printoptions
        numpy.broadcast_shapes lax.broadcast_shapes lax.conv_dimension_numbers lax.shape_as_value
        lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple
        lax.conv_transpose_shape_tuple lax.padtype_to_pads lax.reduce_window_shape_tuple
        nn.get_scaled_dot_general_config random.key_dtype random.default_prng_impl""",
    "gives text, types or Python values": """numpy.array_repr numpy.array_str numpy.einsum_path
        numpy.result_type numpy.iterable lax.dtype random.key_impl numpy.isscalar numpy.ndim
        numpy.iscomplexobj numpy.isrealobj numpy.shape numpy.size""",
    "reads or writes what is outside": """numpy.load numpy.save numpy.savez numpy.fromfile
        numpy.fromiter numpy.fromstring numpy.frombuffer numpy.from_dlpack""",
    "takes functions, which tests/compositions draws": """numpy.vectorize numpy.frompyfunc
        lax.cond lax.switch lax.scan lax.while_loop lax.custom_linear_solve lax.custom_root
        lax.composite lax.platform_dependent lax.scatter_apply numpy.mask_indices lax.stage
        lax.fori_loop""",
    "needs a named axis or a mesh": """lax.all_gather lax.all_to_all lax.axis_index lax.axis_size
        lax.pbroadcast lax.pcast lax.pmax lax.pmean lax.pmin lax.ppermute lax.precv lax.psend
        lax.pshuffle lax.psum lax.psum_scatter lax.pswapaxes lax.pvary lax.ragged_all_to_all
        lax.with_sharding_constraint lax.all_gather_reduced lax.all_gather_invariant
        lax.preduced lax.unreduced_psum lax.unreduced_psum_scatter lax.unreduced_reduce_scatter
        lax.all_reduce lax.reduced_vary_cast""",
    "orders effects": "lax.after_all lax.create_token lax.dce_sink",
    "elements are whatever was in memory": "numpy.empty numpy.empty_like lax.empty",
    "draws words of the machine's own generator": "lax.rng_uniform",
    "dimension numbers of its own": "lax.ragged_dot_general nn.scaled_dot_general lax.scaled_dot",
}
LEFT_OUT = {name: why for why, names in REASONS.items() for name in names.split()}


FORMS = tuple(
    f"forms.{name}"
    for name in vars(forms)
    if inspect.isfunction(vars(forms)[name]) and name[0] != "_"
)


def _public(module: Any) -> list[str]:
    return [n for n in getattr(module, "__all__", dir(module)) if not n.startswith("_")]


def _members(path: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(f"calque.{path}")
    for name in _public(module):
        member = getattr(module, name)
        if isinstance(member, types.ModuleType) or inspect.isclass(member):
            continue
        if callable(member):
            yield f"{path}.{name}", member
        elif path == "scipy.stats":  # a distribution: its functions are members
            for inner in dir(member):
                if not inner.startswith("_") and callable(getattr(member, inner)):
                    yield f"{path}.{name}.{inner}", getattr(member, inner)


def signatures() -> dict[str, inspect.Signature]:
    """The functions that are drawn, with their signatures."""
    found = {}
    for path in MODULES:
        for name, member in _members(path):
            last = name.rpartition(".")[2]
            if name in LEFT_OUT or last.endswith("_p") or isinstance(member, type(calque)):
                continue
            try:
                found[name] = inspect.signature(member)
            except (TypeError, ValueError):
                found[name] = inspect.Signature()
    return found
