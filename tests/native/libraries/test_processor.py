"""Whether a processor can run a library."""

import ctypes

import pytest

from calque.machine.code import llvm, target
from calque.native.libraries import processor
from tests.native.libraries.shared import needs_images

pytestmark = needs_images


def asked(name, features):
    """What the question says when these features are needed."""
    t = target.describe()._replace(cpu="a processor", features=",".join(f"+{f}" for f in features))
    target.read_assembly()
    text = "\n".join(processor.text(t)).replace(processor.ASK, name)
    text = text.replace("define internal", "define")
    address = llvm.link_module(text + "\n", [name], cache=False)[name]
    return ctypes.CFUNCTYPE(ctypes.c_int32)(address)


@pytest.mark.parametrize("feature", sorted(processor._BITS))
def test_a_feature_is_found_where_llvm_finds_it(feature):
    has = target._host_features()
    if feature not in has:
        pytest.skip("LLVM does not tell")
    assert asked(f"asks_{feature.replace('.', '_')}", [feature])() == has[feature]


def test_it_is_asked_once_and_for_all():
    question = asked("asks_all", processor.needed(target._own()))
    assert [question(), question()] == [1, 1]
    assert asked("asks_nothing", [])() == 1


def test_levels_need_what_they_are_defined_by():
    v3 = target.named("x86-64-v3")
    assert processor.needed(v3) == processor.LEVELS["x86-64-v3"]
    assert "avx512f" in processor.needed(target.named("znver4"))
    assert "avx2" in processor.needed(target.named("znver2"))
    assert processor.needed(target.named("x86-64")) == frozenset()
    assert all(f in processor._BITS for level in processor.LEVELS.values() for f in level)
