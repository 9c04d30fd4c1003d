"""Parts of `jax._src` that libraries import: a few lines each, on the real thing."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque import interpreters
    from calque.compat.private import (
        ad_checkpoint,
        ad_util,
        api,
        api_util,
        array,
        basearray,
        callback,
        checkify,
        compiler,
        config,
        core,
        custom_derivatives,
        debugging,
        dispatch,
        distributed,
        dtypes,
        earray,
        effects,
        errors,
        flatten_util,
        lax,
        lib,
        linear_util,
        mesh,
        mesh_utils,
        named_sharding,
        numpy,
        op_shardings,
        partition_spec,
        pjit,
        prng,
        random,
        sharding,
        sharding_impls,
        source_info_util,
        stages,
        state,
        traceback_util,
        tree_util,
        typing,
        util,
        xla_bridge,
    )
    from calque.compat.private.helpers import clusters, frozen_dict
    from calque.compat.private.testing import public_test_util, test_util

__getattr__, __dir__ = _lazy.facade(__name__, __file__)
