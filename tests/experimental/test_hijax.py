"""Types above arrays: classes can be derived and registered, their values are refused with the
reason."""

import pytest

import calque
from calque.core.trace import REFUSED_TYPES
from calque.experimental import hijax


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


class Special(Pair):
    pass


class PairType(hijax.HiType):
    pass


@pytest.fixture
def registered():
    hijax.register_hitype(Pair, lambda p: PairType())
    yield
    del REFUSED_TYPES[Pair]


@pytest.mark.parametrize("value", [Pair(1.0, 2.0), Special(1.0, 2.0)])
@pytest.mark.parametrize(
    "use", [calque.typeof, calque.jit(lambda p: p), calque.make_jaxpr(lambda p: p)]
)
def test_a_value_of_a_registered_class_says_why(registered, value, use):
    with pytest.raises((NotImplementedError, TypeError)) as before:
        use(value)
    text = str(before.value)
    assert "the class Pair" in text and "pytrees of them, or calque.Ref" in text


def test_other_classes_are_no_operands_as_ever(registered):
    class Other:
        pass

    with pytest.raises(TypeError, match="is not a valid"):
        calque.typeof(Other())


@pytest.mark.parametrize("wrong", [(3, len), (Pair(1, 2), len), (Pair, "type")])
def test_what_cannot_be_registered(wrong):
    with pytest.raises(TypeError, match="takes a class and a function"):
        hijax.register_hitype(*wrong)


def test_operations_are_refused():
    with pytest.raises(NotImplementedError, match="the operation pack: programs over types"):
        hijax.HiPrimitive("pack").bind(1.0)

    class Packed(hijax.VJPHiPrimitive):
        pass

    with pytest.raises(NotImplementedError, match="Packed: programs over types"):
        Packed()(1.0)


def test_kinds_of_effects_in_control_flow():
    class Prints(calque.extend.core.Effect):
        pass

    class PrintsTwice(Prints):
        pass

    allowed = type(hijax.control_flow_allowed_effects)()
    assert not allowed.contains(Prints)
    allowed.add_type(Prints)
    assert allowed.contains(PrintsTwice) and not allowed.contains(calque.extend.core.Effect)
