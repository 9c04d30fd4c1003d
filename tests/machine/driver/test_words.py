"""Operands of the driver's words."""

from calque.machine.driver.words import Label, Reg, Slot, Varying


def test_operands_are_values():
    assert Slot("input", 1) == Slot("input", 1) != Slot("output", 1)
    assert Reg(3) == Reg(3) != Reg(4) and hash(Slot("input", 1)) == hash(Slot("input", 1))
    assert str(Slot("input", 1)) != str(Slot("output", 1)) and str(Reg(3)) != str(Reg(4))


def test_numbers_that_another_call_replaces():
    n = Varying(7, "size")
    assert n == 7 and n.key == "size" and n + 1 == 8 and isinstance(n, int)


def test_labels_are_their_own():
    assert Label() is not Label() and Label() != Label()
