"""Functions of neural networks."""

from typing import TYPE_CHECKING

from calque.core import lazy as _lazy
from calque.numpy.calls import cached as _cached

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.nn import initializers
    from calque.nn.attention import dot_product_attention
    from calque.nn.functions import (
        celu,
        elu,
        gelu,
        glu,
        hard_sigmoid,
        hard_silu,
        hard_swish,
        hard_tanh,
        identity,
        leaky_relu,
        log1mexp,
        log_sigmoid,
        mish,
        one_hot,
        relu,
        relu6,
        selu,
        sigmoid,
        silu,
        soft_sign,
        softplus,
        sparse_plus,
        sparse_sigmoid,
        squareplus,
        swish,
        tanh,
    )
    from calque.nn.normalisation import (
        log_softmax,
        logmeanexp,
        logsumexp,
        softmax,
        standardize,
    )
    from calque.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid",
    "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "standardize", "swish", "tanh",
]  # fmt: skip

if not TYPE_CHECKING:  # to checkers, a name that is not imported is none
    __getattr__, __dir__ = _lazy.facade(__name__, __file__, _cached.with_call_path)
