"""What compilers would learn from profiles."""

import pytest

import calque


def test_profiles_teach_no_compiler():
    with pytest.raises(NotImplementedError, match="'/tmp/some'"):
        calque.experimental.profiler.get_profiled_instructions_proto("/tmp/some")


def test_modules_are_found_by_their_names():
    for name in calque.experimental.__all__:
        assert getattr(calque.experimental, name) is not None
