"""`jax._src.api`: the transformations."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import (
        ShapeDtypeStruct,
        block_until_ready,
        checkpoint,
        clear_caches,
        device_get,
        device_put,
        disable_jit,
        effects_barrier,
        eval_shape,
        fwd_and_bwd,
        grad,
        hessian,
        jacfwd,
        jacrev,
        jit,
        jvp,
        linear_transpose,
        linearize,
        live_arrays,
        make_jaxpr,
        named_call,
        named_scope,
        pmap,
        value_and_grad,
        vjp,
        vmap,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
