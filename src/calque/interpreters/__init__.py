"""The tables of rules of primitives, in JAX's names: derivatives, batching, lowering."""
