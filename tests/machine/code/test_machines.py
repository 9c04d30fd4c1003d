"""Target machines that threads have for themselves."""

from calque.machine.code import machines, target


def test_what_one_gives_back_another_takes() -> None:
    with machines.one_for(1) as first:
        with machines.one_for(1) as second:
            assert first is not second
        with machines.one_for(1) as third:
            assert third is second
    own = machines.take_all()
    assert len(own) == machines.LEVELS and own[1] is first
    machines.give_back_all(own)
    assert machines.take_all() == own
    machines.give_back_all(own)


def test_machines_of_other_processors_are_not_kept() -> None:
    with target.making_for(target.named("x86-64")):
        with machines.one_for(2) as first:
            pass
        with machines.one_for(2) as second:
            assert second is not first
