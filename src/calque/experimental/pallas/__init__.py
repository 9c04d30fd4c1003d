"""Attention over sparse masks (`ops.tpu.splash_attention`), which libraries import whatever the
device. The language of kernels itself, which speaks to GPUs and TPUs, is not here."""

from typing import Any

__all__ = ()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"calque.experimental.pallas has no {name}: kernels that are written in Pallas are for GPUs"
        " and TPUs. Write the function with calque.numpy or calque.lax, which compile to machine"
        " code here, or run the kernel with JAX"
    )
