"""One process."""

import pytest

import calque


def test_one_process():
    d = calque.distributed
    assert not d.is_initialized()
    d.initialize("localhost:1234", num_processes=1, process_id=0)
    assert d.is_initialized()
    with pytest.raises(RuntimeError, match="only be called once"):
        d.initialize()
    d.shutdown()
    for kwargs in ({"num_processes": 2}, {"coordinator_address": "host:1"}):
        with pytest.raises(ValueError, match="num_processes and process_id"):
            d.initialize(**kwargs)
    with pytest.raises(NotImplementedError, match="slice_index cannot be chosen"):
        d.initialize(slice_index=1)
    with pytest.raises(ValueError, match="initialization_timeout must be positive"):
        d.initialize(initialization_timeout=0)
