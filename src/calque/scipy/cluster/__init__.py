"""calque.scipy.cluster: vector quantisation, in `vq`."""

from calque.scipy.cluster import vq

__all__ = ["vq"]
