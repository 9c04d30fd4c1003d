"""What writes arrays in the background, as an interface: checkpointing libraries derive from it."""

from __future__ import annotations

import abc
from typing import Any


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Writes checkpoints while the program goes on, for all processes together.

    A class of a library that derives from it says how. `serialize` starts to write and returns;
    `wait_until_finished` returns when all is written; what failed meanwhile is raised by
    `check_for_errors`. To write arrays without such a library, use `numpy.savez`."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what failed in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Return when everything is written."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Any) -> None:
        """Start to write arrays to these places, and call back when that is done."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None
    ) -> Any:
        """The arrays of these places, with these shardings."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Refuses to be made: arrays of several processes are not written through TensorStore here.

    The name is there for programs that import it and use it for such arrays only. orbax saves and
    restores arrays with a manager of its own."""

    def __new__(cls, *args: Any, **kwargs: Any) -> GlobalAsyncCheckpointManager:
        raise _no_tensorstore(cls.__name__)


def get_tensorstore_spec(ckpt_path: str, *args: Any, **kwargs: Any) -> Any:
    """Refuses: there is nothing here that reads the answer.

    Args:
        ckpt_path: Where arrays would be written."""
    raise _no_tensorstore(f"get_tensorstore_spec({ckpt_path!r})")


def _no_tensorstore(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what}: calque does not write arrays through TensorStore. Use orbax.checkpoint, or"
        " numpy.savez for the arrays of one process"
    )
