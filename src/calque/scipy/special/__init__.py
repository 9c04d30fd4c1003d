"""Special functions."""

from calque.nn.normalisation import log_softmax, logsumexp, softmax
from calque.scipy.special.entropies import *  # noqa: F403
from calque.scipy.special.entropies import __all__ as _entropies
from calque.scipy.special.gammas import *  # noqa: F403
from calque.scipy.special.gammas import __all__ as _gammas
from calque.scipy.special.normals import *  # noqa: F403
from calque.scipy.special.normals import __all__ as _normals

__all__ = [*_entropies, *_gammas, *_normals, "log_softmax", "logsumexp", "softmax"]
