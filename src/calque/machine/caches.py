"""Caches: each is declared once, by name, with a bound, and counts what becomes of it.

`memo` keeps the results of a function, `Table` what is found by a key, `Tables` as much for each of
many objects. All are known to `caches`, which lists their counters and forgets what was traced or
compiled. A hit of a `memo` is one of `functools.lru_cache` itself: the counters cost nothing there.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
SomeEntries = TypeVar("SomeEntries", bound="Entries[Any, Any]")
Function = TypeVar("Function", bound=Callable[..., Any])

EVICTED_AT_ONCE: Final = 8  # a full table loses this part of itself, the oldest


class Counters(NamedTuple):
    """What became of a cache. `hits` is None where counting them would cost as much as a hit;
    `bound` is a number of entries, or what else bounds it."""

    name: str
    hits: int | None
    misses: int
    size: int
    bound: int | str
    evictions: int


class Cache(Protocol):
    """What is known of every cache. `programs` says whether it holds what was traced or
    compiled."""

    @property
    def name(self) -> str: ...

    @property
    def programs(self) -> bool: ...

    def counters(self) -> Counters: ...

    def clear(self) -> None: ...


class Caches:
    """All caches of the process, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Cache] = {}

    def declare(self, cache: Cache) -> None:
        """From now on the cache is listed; no other one may have its name."""
        if cache.name in self._known:
            raise ValueError(f"there is a cache named {cache.name!r} already")
        self._known[cache.name] = cache

    def counters(self) -> tuple[Counters, ...]:
        """The counters of each, by name."""
        return tuple([self._known[name].counters() for name in sorted(self._known)])

    def clear_programs(self) -> None:
        """Forget all that was traced or compiled."""
        for cache in list(self._known.values()):
            if cache.programs:
                cache.clear()


caches: Final = Caches()


def checked_bound(name: str, bound: int | str) -> int | str:
    """The bound of a cache, if it is one."""
    if bound == "" or (isinstance(bound, int) and bound < 1):
        raise ValueError(f"the cache {name!r} needs a bound: a positive number, or what bounds it")
    return bound


# ---------------------------------------------------------------- results of functions


class Memo:
    """The results of a function: what `memo` makes."""

    def __init__(
        self, function: Callable[..., Any], name: str, bound: int | str, programs: bool
    ) -> None:
        self.name, self.bound, self.programs = name, checked_bound(name, bound), programs
        self._earlier = Counts()  # until the last `clear`
        self._failed = 0

        @functools.wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BaseException:
                self._failed += 1
                raise

        self.kept = functools.lru_cache(bound if isinstance(bound, int) else None)(made)

    def counters(self) -> Counters:
        hits, misses, _, size = self.kept.cache_info()
        evictions = max(misses - self._failed - size, 0) if isinstance(self.bound, int) else 0
        e = self._earlier
        return Counters(
            self.name, e.hits + hits, e.misses + misses, size, self.bound, e.evictions + evictions
        )

    def clear(self) -> None:
        _, hits, misses, _, _, evictions = self.counters()
        self._earlier = Counts(hits or 0, misses, evictions)
        self._failed = 0
        self.kept.cache_clear()


def memo(name: str, bound: int | str, programs: bool = False) -> Callable[[Function], Function]:
    """Keep the results of a function, at most `bound` of them, the last that were asked for; or
    all, where `bound` says in words why they are few: then a hit is a little quicker."""

    def declared(function: Function) -> Function:
        cache = Memo(function, name, bound, programs)
        caches.declare(cache)
        kept: Any = cache.kept
        return kept  # type: ignore[no-any-return]

    return declared


# ---------------------------------------------------------------- tables


class Counts:
    """Numbers that tables of one name share."""

    __slots__ = ("evictions", "hits", "misses")

    def __init__(self, hits: int = 0, misses: int = 0, evictions: int = 0) -> None:
        self.hits, self.misses, self.evictions = hits, misses, evictions


class Entries(dict[Key, Value]):
    """What a table holds: a dict that counts what is asked of `find`, and drops the oldest entries
    when there are more than `bound`."""

    __slots__ = ("__weakref__", "bound", "counts")

    def __init__(self, bound: int, counts: Counts | None = None) -> None:
        self.bound, self.counts = bound, counts or Counts()

    def find(self, key: Key) -> Value | None:
        """As `get`, and counted."""
        found = self.get(key)
        if found is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return found

    def __setitem__(self, key: Key, value: Value) -> None:
        dict.__setitem__(self, key, value)
        if len(self) > self.bound:
            self._drop_oldest()

    def setdefault(self, key: Key, default: Value) -> Value:  # type: ignore[override]
        found = super().setdefault(key, default)
        if len(self) > self.bound:
            self._drop_oldest()
        return found

    def _drop_oldest(self) -> None:
        """Many at once: the front of a dict whose first entries are gone is slow to find."""
        try:
            oldest = list(itertools.islice(self, max(self.bound // EVICTED_AT_ONCE, 1)))
        except RuntimeError:  # another thread has added one meanwhile, and drops them
            return
        for key in oldest:
            if self.pop(key, None) is not None:
                self.counts.evictions += 1


class Table(Entries[Key, Value]):
    """Values that are found by a key."""

    __slots__ = ("name", "programs")

    def __init__(self, name: str, bound: int, programs: bool = False) -> None:
        checked_bound(name, bound)
        super().__init__(bound)
        self.name, self.programs = name, programs
        caches.declare(self)

    def counters(self) -> Counters:
        c = self.counts
        return Counters(self.name, c.hits, c.misses, len(self), self.bound, c.evictions)


class Tables(Generic[Key, Value]):
    """Tables of many objects, with the same name and bound; their counters are added up. Each lives
    as long as its object."""

    def __init__(self, name: str, bound: int, programs: bool = False) -> None:
        self.name, self.bound, self.programs = name, bound, programs
        checked_bound(name, bound)
        self.counts = Counts()
        alive: dict[int, weakref.ref[Any]] = {}
        self._alive, self._forget = alive, lambda r: alive.pop(id(r), None)
        caches.declare(self)

    def new(self) -> Entries[Key, Value]:
        """The table of one more object."""
        return self.new_of(Entries)

    def new_of(self, kind: type[SomeEntries]) -> SomeEntries:
        """The table of one more object, of a class of its own."""
        made = kind(self.bound, self.counts)
        alive = weakref.ref(made, self._forget)
        self._alive[id(alive)] = alive
        return made

    def __iter__(self) -> Iterator[Entries[Key, Value]]:
        """The tables that there are now."""
        return iter([t for t in [r() for r in list(self._alive.values())] if t is not None])

    def counters(self) -> Counters:
        c, size = self.counts, sum([len(t) for t in self])
        return Counters(
            self.name, c.hits, c.misses, size, f"{self.bound} of each object", c.evictions
        )

    def clear(self) -> None:
        for table in self:
            table.clear()


class WeakTable(weakref.WeakKeyDictionary[Key, Value]):
    """What is known of objects, as long as they live."""

    def __init__(self, name: str, programs: bool = False) -> None:
        super().__init__()
        self.name, self.programs, self.counts = name, programs, Counts()
        caches.declare(self)

    def find(self, key: Key) -> Value | None:
        """As `get`, and counted."""
        found = self.get(key)
        if found is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return found

    def counters(self) -> Counters:
        c = self.counts
        return Counters(self.name, c.hits, c.misses, len(self), "the keys that live", 0)


class Alive(weakref.WeakValueDictionary[Key, Value]):
    """Values by key, as long as somebody else has them."""

    programs = False

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        caches.declare(self)

    def counters(self) -> Counters:
        return Counters(self.name, None, 0, len(self), "the values that live", 0)


class Interned(dict[Key, Value]):
    """Values of which there is one for each key: equality is identity. The owner counts those that
    it `made`; a hit is a lookup in a dict, and counting it would cost as much."""

    __slots__ = ("bound", "made", "name")

    programs = False

    def __init__(self, name: str, bound: int | str) -> None:
        super().__init__()
        self.name, self.bound = name, checked_bound(name, bound)
        self.made = 0
        caches.declare(self)

    def counters(self) -> Counters:
        size = len(self)
        return Counters(self.name, None, self.made, size, self.bound, max(self.made - size, 0))
