"""`jax._src.distributed`: what this process is among several. There is one."""

from types import SimpleNamespace
from typing import Final

global_state: Final = SimpleNamespace(
    process_id=0, num_processes=1, client=None, service=None, coordinator_address=None
)
