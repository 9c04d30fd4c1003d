"""Rules of factors for arrays at hand. tests/experimental/test_custom_partitioning.py has those
that are refused when they are given."""

import pytest

from calque.transforms.primitives.sharding_rules import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    factors_of,
    parsed_rule,
)


def factors(text, ins, outs, **said):
    return factors_of(parsed_rule(text, said), ins, outs)


def test_factors_are_numbered_as_they_are_met():
    found = factors("i k, k j -> i j", [(8, 4), (4, 2)], [(8, 2)], reduction_factors=("k",))
    assert found.sizes == (8, 4, 2)
    assert found.operands == (((0,), (1,)), ((1,), (2,))) and found.results == (((0,), (2,)),)
    assert found.kinds["reduction_factors"] == (1,) and not found.kinds["permutation_factors"]


def test_leading_dimensions_are_factors_by_their_group():
    found = factors("...1 i, ...2 i -> ...1 i, ...2 i", [(8, 4, 3), (2, 3)], [(8, 4, 3), (2, 3)])
    assert found.sizes == (8, 4, 3, 2) and found.results == (((0,), (1,), (2,)), ((3,), (2,)))
    assert factors("...i->...i", [(3,)], [(3,)]).operands == (((0,),),)
    rule = SdyShardingRule(((BATCHING, "i"),), ((BATCHING, "i"),))  # as users write it
    assert factors_of(rule, [(2, 3)], [(2, 3)]).sizes == (2, 3)
    assert parsed_rule("... -> ...", {}).operand_mappings == ((f"{BATCHING}0",),)
    assert parsed_rule("...007 -> ...007", {}).operand_mappings == ((f"{BATCHING}7",),)


def test_compound_factors_have_the_sizes_that_are_said_or_found():
    found = factors("(i j) k -> i j k", [(8, 4)], [(2, 4, 4)])
    assert found.sizes == (2, 4, 4) and found.operands == (((0, 1), (2,)),)
    assert factors("(i j) k -> k (i j)", [(8, 4)], [(4, 8)], i=2, j=4).sizes == (2, 4, 4)
    assert factors("i -> i", [(8,)], [(4,)]).sizes == (4,)  # the smallest
    assert factors("i -> i", [(0,)], [(4,)]).sizes == (0,)
    assert factors(", i ->", [(), (3,)], [()]).operands == ((), ((0,),))


@pytest.mark.parametrize(
    ("text", "ins", "outs", "said", "why"),
    [
        (
            "i -> i",
            [(8, 2)],
            [(4,)],
            {},
            "operand 0 has rank 1, but the operation operand 0 ",
        ),
        ("i -> i", [(8,)], [(4, 2)], {}, "result 0 has rank 1"),
        ("i, j -> i", [(8,)], [(8,)], {}, "has 2 operands, but the operation has 1"),
        ("i -> i, i", [(8,)], [(8,)], {}, "has 2 results, but the operation has 1"),
        ("... i -> ... i", [()], [()], {}, "operand 0 has rank 1, but the operation operand 0 has"),
        ("... i -> ... i", [(2, 3)], [(3,)], {}, "different number of leading dimensions 1 and 0"),
        ("... i -> ... i", [(2, 3)], [(4, 3)], {}, "dimension 0 of ...0 corresponds to two sizes"),
        ("(i j) -> (i j)", [(8,)], [(8,)], {"i": 2, "j": 3}, "has size 8, but its factors make 6"),
    ],
)
def test_rules_of_other_arrays_are_refused(text, ins, outs, said, why):
    with pytest.raises(ValueError, match=why):
        factors(text, ins, outs, **said)


def test_names_of_factors_are_checked():
    with pytest.raises(ValueError, match="Unknown character"):
        parsed_rule(f"{BATCHING} i -> i", {})
    with pytest.raises(ValueError, match="start with a letter"):
        CompoundFactor(BATCHING, "i")
    with pytest.raises(ValueError, match="start with a letter"):
        ArrayMapping(f"{BATCHING}i")
