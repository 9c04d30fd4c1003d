"""What compilers may learn from a profile of programs."""

from typing import NoReturn


def get_profiled_instructions_proto(tensorboard_dir: str) -> NoReturn:
    """Refuses: what XLA's compiler for NVIDIA GPUs learns from a profile is not made here.

    Args:
        tensorboard_dir: Where a profile stands.

    Raises:
        NotImplementedError: Always.

    >>> from calque.experimental import profiler
    >>> profiler.get_profiled_instructions_proto("/tmp/profile")
    Traceback (most recent call last):
    NotImplementedError: get_profiled_instructions_proto..."""
    raise NotImplementedError(
        f"get_profiled_instructions_proto: calque's profiles (here {tensorboard_dir!r}) hold no"
        " instructions of XLA for its compiler to learn from; programs run without them"
    )


__all__ = ["get_profiled_instructions_proto"]
