"""The launchers that libraries import are those that are asked."""

from calque.compat.private.helpers import clusters
from calque.xla.clusters import ClusterEnv


def test_they_are_the_same() -> None:
    known = [getattr(clusters, name) for name in clusters.__all__ if name != "ClusterEnv"]
    assert clusters.ClusterEnv is ClusterEnv and set(known) <= set(ClusterEnv._cluster_types)
