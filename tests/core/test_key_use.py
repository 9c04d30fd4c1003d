"""Which random keys are used up, with the checks on: by parts of which one runs, and by rounds."""

import pytest

import calque
from calque import lax, random
from calque.core import key_use
from calque.core.errors import KeyReuseError


@pytest.fixture(autouse=True)
def checked():
    with calque.debug_key_reuse(True):
        yield


def test_a_key_is_used_once():
    key = random.key(1)
    assert key_use.use_of(key) is None
    random.normal(key)
    use = key_use.use_of(key)
    assert use is not None and use.key is key and "test_key_use.py" in use.where
    with pytest.raises(KeyReuseError, match=r"reused: .* used it at .*test_key_use.py"):
        random.uniform(key)
    random.normal(random.clone(random.key(1)))  # the same numbers in another key


def test_of_parts_only_one_runs():
    a, b = random.key(1), random.key(2)

    def parts():
        return [lambda k=k: key_use.consume(k, "draw", "here") for k in (a, a, b)]

    key_use.one_of(parts())
    assert key_use.use_of(a) and key_use.use_of(b)
    with pytest.raises(KeyReuseError):
        key_use.one_of(parts())


def test_a_failed_part_forgets_nothing():
    a, b = random.key(1), random.key(2)
    key_use.consume(a, "draw", "here")
    with pytest.raises(ZeroDivisionError):
        key_use.one_of([lambda: key_use.consume(b, "draw", "here"), lambda: 1 // 0])
    assert key_use.use_of(a)


def test_rounds_of_a_loop_carry_or_make_their_keys():
    def fixed(key, xs):
        return lax.scan(lambda c, x: (c + random.normal(key), x), 0.0, xs)

    with pytest.raises(KeyReuseError, match="in every round of a loop"):
        fixed(random.key(1), calque.numpy.arange(3.0))

    def split(carry, x):
        key, sub = random.split(carry)
        return key, random.normal(sub)

    assert lax.scan(split, random.key(1), None, length=3)[1].shape == (3,)


def test_without_the_checks_nothing_is_kept():
    with calque.debug_key_reuse(False):
        key = random.key(3)
        assert float(random.normal(key)) == float(random.normal(key))
        assert key_use.use_of(key) is None
        assert key_use.one_of([lambda: 1, lambda: 2]) == [1, 2]
        assert key_use.in_rounds(lambda: "part", 0) == "part"
