"""Functions of neural networks."""

from calque.core import guards as _guards
from calque.nn import initializers
from calque.nn.attention import dot_product_attention
from calque.nn.functions import *  # noqa: F403
from calque.nn.functions import __all__ as _activations
from calque.nn.normalisation import log_softmax, logmeanexp, logsumexp, softmax, standardize
from calque.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

__all__ = [
    *_activations, "dot_product_attention", "get_scaled_dot_general_config", "initializers",
    "log_softmax", "logmeanexp", "logsumexp",
    "scaled_dot_general", "scaled_matmul", "softmax", "standardize",
]  # fmt: skip

_guards.guard_public(globals())
