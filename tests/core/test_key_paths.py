"""Keys of the containers above a leaf: their text, equality and use in patterns."""

import pytest

from calque.core.key_paths import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr

KEYS = [
    (SequenceKey(2), "[2]", "SequenceKey(idx=2)"),
    (DictKey("w"), "['w']", "DictKey(key='w')"),
    (GetAttrKey("x"), ".x", "GetAttrKey(name='x')"),
    (FlattenedIndexKey(1), "[<flat index 1>]", "FlattenedIndexKey(key=1)"),
]


@pytest.mark.parametrize(("key", "text", "shown"), KEYS)
def test_text(key, text, shown):
    assert str(key) == text and repr(key) == shown
    same = type(key)(getattr(key, key.__match_args__[0]))
    assert same == key and hash(same) == hash(key) and {key: 1}[same] == 1


def test_keys_of_different_kinds_differ():
    keys = [key for key, _, _ in KEYS]
    assert len(set(keys)) == len(keys) and SequenceKey(1) != FlattenedIndexKey(1)


def test_paths_as_text():
    path = tuple(key for key, _, _ in KEYS)
    assert keystr(path) == "[2]['w'].x[<flat index 1>]"
    assert keystr(path, simple=True, separator="/") == "2/w/x/1"


def test_keys_match_patterns():
    match DictKey("w"):
        case DictKey(name):
            assert name == "w"
