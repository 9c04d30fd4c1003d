"""`jax._src.clusters`: what a launcher of many processes tells each of them. Classes that derive
from `ClusterEnv` are asked by `distributed.initialize`."""

from calque.xla.clusters import ClusterEnv, Mpi4pyCluster, OmpiCluster, SlurmCluster

__all__ = ["ClusterEnv", "Mpi4pyCluster", "OmpiCluster", "SlurmCluster"]
