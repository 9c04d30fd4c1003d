"""Objects beside devices: made once, when they are first needed."""

import calque.numpy as jnp
from calque.experimental.colocated_python import colocated_python_class

made = []


@colocated_python_class
class Running:
    """A sum that goes on."""

    def __init__(self, start):
        made.append(start)
        self.total = start

    def __call__(self, x):
        return self.add(x)

    def add(self, x):
        """One more."""
        self.total = self.total + x
        return self.total


def test_objects_are_made_with_the_first_call():
    made.clear()
    running = Running(10)
    assert not made and Running.__doc__ == "A sum that goes on."
    assert running.add(jnp.float32(1)) == 11 and running(jnp.float32(2)) == 13
    assert made == [10]
    assert running.add.specialize(out_specs_fn=lambda x: x)(jnp.float32(1)) == 14
