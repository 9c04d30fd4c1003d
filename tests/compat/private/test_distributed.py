"""What `jax._src.distributed` tells libraries."""

from calque.compat.private import distributed
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import come_to_their_end, two


def test_one_process_alone() -> None:
    state = distributed.global_state
    assert (state.process_id, state.num_processes) == (0, 1)
    assert state.client is state.service is state.coordinator_address is None


@needs_jaxlib
def test_the_client_keeps_values_and_barriers_of_two() -> None:
    come_to_their_end(
        two("""
import sys
import calque
jax = calque.as_jax()
from jax._src.distributed import global_state
address, index = sys.argv[1], int(sys.argv[2])
assert global_state.client is None
global_state.initialize(address, num_processes=2, process_id=index)
assert jax.distributed.is_initialized()
assert (global_state.process_id, global_state.num_processes) == (index, 2)
assert global_state.coordinator_address == address
assert (global_state.service is None) == (index == 1)
if index == 0:
    global_state.client.key_value_set("from", "the first")
assert global_state.client.blocking_key_value_get("from", 20_000) == "the first"
global_state.client.wait_at_barrier("both", timeout_in_ms=20_000)
global_state.shutdown()
assert global_state.client is None
print("whole", index)
""")
    )
