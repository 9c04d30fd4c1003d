"""What foreign functions may ask of who calls them."""

import ctypes
import threading

import numpy as np
import pytest

from calque.machine.foreign import runtime, structs, targets
from tests.machine.foreign.handlers import aligned, handler, known, run


def test_errors_have_their_code_and_are_forgotten():
    before = len(runtime._errors)
    target = known("failing", lambda frame: frame.error(8, "no more"))
    with pytest.raises(targets.ForeignError, match=r"RESOURCE_EXHAUSTED: no more .*'failing'"):
        run(target)
    assert len(runtime._errors) == before


def test_states_are_kept_between_calls_and_ended():
    ended = []
    end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended.append)
    info = structs.made(structs.TypeInfo, deleter=ctypes.cast(end, ctypes.c_void_p).value)
    number = ctypes.c_int64(0)
    capsules = {
        "type_id": targets.capsule_of(ctypes.addressof(number)),
        "type_info": targets.capsule_of(ctypes.addressof(info)),
    }
    targets.make_known_type("of a test", capsules, "cpu")
    assert number.value > 0
    counted = [0]

    def begin(frame):
        record = structs.made(
            structs.State, ctx=frame.raw.ctx, stage=0, type_id=ctypes.pointer(number), state=77
        )
        return frame.ask("state_set", record)

    def go_on(frame):
        record = structs.made(
            structs.StateWithoutStage, ctx=frame.raw.ctx, type_id=ctypes.pointer(number)
        )
        assert frame.ask("state_get", record) is None and record.state == 77
        counted[0] += 1

    stages = {"instantiate": handler(begin), "execute": handler(go_on)}
    targets.make_known("with a state", stages, "cpu", 1, {})
    instance = run(targets.find("with a state"))
    instance.run([], [])
    assert counted == [2] and ended == []
    del instance
    assert ended == [77]


def test_a_state_of_another_type_is_an_error():
    said = []

    def execute(frame):
        number = ctypes.c_int64(3)
        record = structs.made(
            structs.State, ctx=frame.raw.ctx, stage=1, type_id=ctypes.pointer(number), state=5
        )
        said.append(runtime.taken_error(frame.ask("state_get", record)))
        frame.ask("state_set", record)
        said.append(runtime.taken_error(frame.ask("state_set", record)))
        number.value, record.state = 4, 6
        said.append(runtime.taken_error(frame.ask("state_get", record)))

    run(known("states", execute))
    assert said[0].startswith("NOT_FOUND: the prepare stage")
    assert said[1] is None  # the same once more
    assert said[2].startswith("INVALID_ARGUMENT: the state is of type 3")


def test_memory_is_aligned_and_freed_with_the_call():
    seen = []

    def execute(frame):
        record = structs.made(structs.Memory, ctx=frame.raw.ctx, size=100, alignment=256)
        assert frame.ask("memory_allocate", record) is None
        seen.append(record.data)
        ctypes.memset(record.data, 1, 100)
        again = structs.made(structs.MemoryFree, ctx=frame.raw.ctx, size=100, data=record.data)
        frame.ask("memory_free", again)
        record.size = 1 << 62
        seen.append(runtime.taken_error(frame.ask("memory_allocate", record)))

    run(known("memory", execute))
    assert seen[0] % 256 == 0 and seen[1].startswith("RESOURCE_EXHAUSTED")
    assert not runtime._calls


def test_a_future_is_awaited():
    def execute(frame):
        record = structs.made(structs.FutureOf)
        frame.ask("future_create", record)
        frame.raw.future = record.future
        out, fails = frame.outs[0], bool(frame.attributes["fails"])

        def later():
            out[...] = 9
            if fails:
                record.error = runtime.new_error("ABORTED", "half way")
                frame.ask("future_error", record)
            else:
                frame.ask("future_available", record)

        threading.Timer(0.01, later).start()

    target, out = known("late", execute), aligned(np.zeros(2))
    run(target, outs=[out], attributes={"fails": False})
    assert out.tolist() == [9, 9]
    with pytest.raises(targets.ForeignError, match="ABORTED: half way"):
        run(target, outs=[out], attributes={"fails": True})
    assert not runtime._futures


@pytest.mark.parametrize("name", ["stream", "context_get", "handler_register"])
def test_what_the_host_has_not_is_an_error_of_the_interface(name):
    said = []

    def execute(frame):
        number = ctypes.c_int64(3)
        record = structs.made(structs.ContextGet, ctx=frame.raw.ctx, type_id=ctypes.pointer(number))
        said.append(runtime.taken_error(frame.ask(name, record)))

    run(known(f"asks {name}", execute))
    assert said[0].split(":")[0] in ("UNIMPLEMENTED", "NOT_FOUND")
