"""Special functions."""

from calque.core import guards as _guards
from calque.nn.normalisation import logsumexp
from calque.numpy.calls import cached as _cached
from calque.scipy.special.entropies import *  # noqa: F403
from calque.scipy.special.entropies import __all__ as _entropies
from calque.scipy.special.faddeeva import dawsn, erfcx, wofz
from calque.scipy.special.gammas import *  # noqa: F403
from calque.scipy.special.gammas import __all__ as _gammas
from calque.scipy.special.harmonics import bessel_jn, sph_harm_y
from calque.scipy.special.hypergeometric import hyp1f1, hyp2f1
from calque.scipy.special.integrals import exp1, expi, expn, fresnel, owens_t, sici, spence
from calque.scipy.special.legendre import lpmn, lpmn_values
from calque.scipy.special.normals import *  # noqa: F403
from calque.scipy.special.normals import __all__ as _normals
from calque.scipy.special.shares import log_softmax, softmax

__all__ = [
    *_entropies, *_gammas, *_normals, "bessel_jn", "dawsn", "erfcx", "exp1", "expi", "expn",
    "fresnel",
    "hyp1f1", "hyp2f1", "log_softmax", "logsumexp", "lpmn", "lpmn_values", "owens_t", "sici",
    "softmax", "spence", "sph_harm_y", "wofz",
]  # fmt: skip

_guards.guard_public(globals(), _cached.with_call_path)
