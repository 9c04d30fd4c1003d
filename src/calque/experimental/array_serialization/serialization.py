"""What writes arrays in the background, as an interface: checkpointing libraries derive from it."""

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
