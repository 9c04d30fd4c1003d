"""`jax._src.distributed`: what this process is among several, as libraries ask for it."""

from typing import Any, Final

from calque.core.devices import number_of_processes, process_number
from calque.distributed import initialize, shutdown
from calque.xla.processes import joined

__all__ = ["State", "global_state", "initialize", "shutdown"]


class State:
    """The process among the others: read anew each time."""

    partition_index = preemption_sync_manager = None

    @property
    def process_id(self) -> int:
        """Which of the processes this is."""
        return process_number()

    @property
    def num_processes(self) -> int:
        """How many there are."""
        return number_of_processes()

    @property
    def client(self) -> Any:
        """jaxlib's client of the service that they meet at: it keeps values and barriers for all of
        them. None for one process."""
        return None if joined.value is None else joined.value.client

    @property
    def service(self) -> Any:
        """The service itself, in process 0."""
        return None if joined.value is None else joined.value.service

    @property
    def coordinator_address(self) -> str | None:
        """Where they met."""
        return None if joined.value is None else joined.value.address

    initialize = staticmethod(initialize)
    shutdown = staticmethod(shutdown)


global_state: Final = State()
