"""A byte-bounded cache of computed values that limits concurrent computation and lets go of what is not used."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

from inspector.project import memory

V = TypeVar("V")

IDLE_SECONDS = 30.0  # an unused value is dropped after this long: memory is given back within a minute
LOOK_EVERY = 5.0  # seconds between checks for such values, and for what others left in cycles
CALM = 1.0  # seconds without a new value, after which a search for garbage is in the way of few answers
SUPERSEDED_SECONDS = 2.0  # an earlier revision stays for what reads it now; ours: longer than most pages take
CROWDED = 50_000_000  # bytes; where a process has grown by more, an answer waits for that search
NEVER = float("inf")


@dataclass
class _Entry(Generic[V]):
    value: V
    bytes: int
    used: float = field(default_factory=time.monotonic)
    superseded: float = NEVER  # when a later revision came

    def is_passed(self, now: float) -> bool:
        """Did a later revision come a while ago."""
        return now - self.superseded > SUPERSEDED_SECONDS


class ByteCache(Generic[V]):
    """A cache bounded by bytes. The newest value stays whatever its size, until another is made or it is not used for a
    while.

    At most `at_once` values are computed at a time, each by one thread while others wait for it: more threads would not
    be faster, would hold more memory, and would keep the event loop from its turns.

    `revision`: the place in each key, a tuple, of the revision of its session. Of keys that differ in nothing else the
    earlier ones are forgotten: a session that grows has many revisions a second, and each value holds more than its
    own bytes, such as the columns that it was made of.
    """

    def __init__(self, budget: int, size: Callable[[V], int], at_once: int = 2, *, revision: int | None = None) -> None:
        self.budget, self.size, self.revision = budget, size, revision
        self.bytes = 0
        self._entries: OrderedDict[Hashable, _Entry[V]] = OrderedDict()
        self._alive: WeakValueDictionary[Hashable, V] = WeakValueDictionary()  # what others hold is not made twice
        self._turns: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._gate = threading.BoundedSemaphore(at_once)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, computed where it is neither cached nor in use."""
        entry = self._find(key)
        if entry is not None:
            return entry.value
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:  # so that the same is not computed twice at a time
            entry = self._find(key)  # it may have been computed while this thread waited
            if entry is not None:
                return entry.value
            if (value := self._alive.get(key)) is None:
                with self._gate:
                    self._make_room()
                    value = make()
            self._keep(key, value)
        return value

    def known(self, key: Hashable) -> V | None:
        """The value of a key where it is cached; it is not computed."""
        entry = self._find(key)
        return None if entry is None else entry.value

    def use(self, belongs: Callable[[Hashable], bool]) -> None:
        """Count the values of some keys as used just now."""
        now = time.monotonic()
        with self._lock:
            for key, entry in self._entries.items():
                if belongs(key):
                    entry.used = now

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._alive.clear()
            self.bytes = 0

    def forget_unused(self, since: float) -> int:
        """Forget what was last used before a moment of the monotonic clock, and earlier revisions; how many values."""
        now = time.monotonic()
        with self._lock:
            old = [key for key, entry in self._entries.items() if entry.used < since or entry.is_passed(now)]
            for key in old:
                self.bytes -= self._entries.pop(key).bytes
            return len(old)

    def __len__(self) -> int:
        return len(self._entries)

    def _find(self, key: Hashable) -> _Entry[V] | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                entry.used = time.monotonic()
                self._entries.move_to_end(key)
            return entry

    def _make_room(self) -> None:
        """Let go of what would go in any case once another value is kept, so that the two are not held at a time. What
        is freed is not given back to the system here: the value that is made next takes it."""
        entries = []
        with self._lock:
            while self.bytes > self.budget:
                entries.append(self._entries.popitem(last=False)[1])
                self.bytes -= entries[-1].bytes
        entries.clear()
        _KEEPER.tidy_if_crowded()

    def _keep(self, key: Hashable, value: V) -> None:
        entry = _Entry(value, self.size(value))
        with self._lock:
            old = self._entries.pop(key, None)
            self.bytes += entry.bytes - (old.bytes if old else 0)
            self._entries[key] = entry
            self._forget_earlier(key)
            with suppress(TypeError):  # a tuple, for one, cannot be referred to weakly
                self._alive[key] = value
            while self.bytes > self.budget and len(self._entries) > 1:
                self.bytes -= self._entries.popitem(last=False)[1].bytes
        del old
        _KEEPER.look_after(self)
        _KEEPER.tidy_if_crowded()

    def _forget_earlier(self, key: Any) -> None:
        """Note which revisions a later one has come for, and forget those for which it came a while ago."""
        if self.revision is None:
            return
        now, (subject, number) = time.monotonic(), _split(key, self.revision)
        for other, entry in list(self._entries.items()):
            its_subject, its_number = _split(other, self.revision)
            if its_subject != subject or its_number >= number:
                continue
            entry.superseded = min(entry.superseded, now)
            if entry.is_passed(now):
                self.bytes -= self._entries.pop(other).bytes


def _split(key: Any, place: int) -> tuple[Hashable, int]:
    """A key without its revision, and that."""
    return (*key[:place], *key[place + 1 :]), key[place]


class _Keeper:
    """Looks through the caches of this process while there is something in them.

    Values that were let go of may be in cycles, and earlier pages leave some, too; the collector would leave them for
    minutes. To search for them takes a tenth of a second, for which no answer should wait: the thread does it when
    nothing has been made for a moment.
    """

    def __init__(self) -> None:
        self._caches: WeakSet[ByteCache[Any]] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._last_made = 0.0  # on the monotonic clock
        self.idle_seconds = IDLE_SECONDS

    def look_after(self, cache: ByteCache[Any]) -> None:
        self._last_made = time.monotonic()
        with self._lock:
            self._caches.add(cache)
            if self._thread is None and self.idle_seconds != NEVER:
                self._thread = threading.Thread(target=self._run, name="caches", daemon=True)
                self._thread.start()

    def held(self) -> int:
        """Bytes of the values that all caches hold."""
        with self._lock:
            return sum(cache.bytes for cache in self._caches)

    def tidy_if_crowded(self) -> None:
        """Search for garbage now where much may be there, or where no thread does it later."""
        memory.trim_if_grown(self.held(), CROWDED if self.idle_seconds != NEVER else memory.GROWN)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_EVERY)
            with self._lock:
                caches = list(self._caches)
            if sum([cache.forget_unused(time.monotonic() - self.idle_seconds) for cache in caches]):
                memory.trim()
            elif time.monotonic() - self._last_made > CALM:
                memory.trim_if_grown(self.held())
            with self._lock:
                if not any(map(len, self._caches)):
                    self._thread = None
                    return


_KEEPER = _Keeper()


def keep_for_good() -> None:
    """Keep values however long they are not used, in a process that ends when it is not used. No thread looks after
    them, for only a process with one thread can make copies of itself (guard_core.outcomes.comparing)."""
    _KEEPER.idle_seconds = NEVER
