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
    for kwargs in ({"num_processes": 2}, {"coordinator_address": "host:1"}, {"slice_index": 1}):
        with pytest.raises(NotImplementedError, match="num_processes=1"):
            d.initialize(**kwargs)
    with pytest.raises(ValueError, match="initialization_timeout must be positive"):
        d.initialize(initialization_timeout=0)
