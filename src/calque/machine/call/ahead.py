"""What the types of the call path call, compiled by other threads while Python imports the rest."""

from __future__ import annotations

from calque.machine.call import operators, run
from calque.machine.lang.unit import begin_together

begin_together([operators.unit, run.unit])
