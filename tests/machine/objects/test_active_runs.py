"""Which Arrays a run uses that has not ended: while Python runs inside of it, nobody takes their
memory."""

from __future__ import annotations

import numpy as np

from calque.machine.call.arrays import wrap_numpy
from calque.machine.objects.active_runs import is_in_use
from tests.machine.call.helpers import fixed_epoch
from tests.machine.call.test_relay import Given, relayed

epoch = fixed_epoch


def test_arguments_are_in_use_while_python_serves_a_call() -> None:
    x, y = (wrap_numpy("aval", np.zeros(1)) for _ in range(2))
    seen: list[tuple[bool, bool]] = []

    def execute(buffers: list[object]) -> Given:
        seen.append((bool(is_in_use(id(x))), bool(is_in_use(id(y)))))
        return Given(["buffer"])

    function = relayed(execute, inputs=1, through_a_call=True)
    function(x)
    assert seen == [(True, False)] and not is_in_use(id(x))
    function(y)
    assert seen[1:] == [(False, True)]
