"""The interface of libraries that write checkpoints."""

import pytest

from calque.experimental.array_serialization import serialization
from calque.experimental.array_serialization.serialization import GlobalAsyncCheckpointManagerBase


class InMemory(GlobalAsyncCheckpointManagerBase):
    def __init__(self):
        self.kept = {}

    def check_for_errors(self):
        pass

    def wait_until_finished(self):
        pass

    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback):
        self.kept.update(zip(tensorstore_specs, arrays))
        on_commit_callback()

    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None):
        return [self.kept[spec] for spec in tensorstore_specs]


def test_libraries_say_how():
    with pytest.raises(TypeError, match="abstract"):
        GlobalAsyncCheckpointManagerBase()
    done = []
    manager = InMemory()
    manager.serialize([1, 2], ["a", "b"], on_commit_callback=lambda: done.append(True))
    assert manager.deserialize(None, ["b"]) == [2] and done == [True]


def test_what_goes_through_tensorstore_is_refused() -> None:
    """By what the user can do instead; importing the names is no fault."""
    for ask in (
        serialization.GlobalAsyncCheckpointManager,
        lambda: serialization.get_tensorstore_spec("/tmp/x", ocdbt=True),
    ):
        with pytest.raises(NotImplementedError, match=r"TensorStore. Use orbax.checkpoint"):
            ask()
