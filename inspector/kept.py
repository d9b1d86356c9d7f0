"""What a process keeps of computed values: the last ones used, up to a number of bytes, few computed at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Kept(Generic[V]):
    """A cache bounded by bytes. The newest value always stays, whatever its size.

    At most `at_once` values are computed at a time: more threads would not be faster, would hold more memory, and would
    keep the event loop from its turns.
    """

    def __init__(self, budget: int, size: Callable[[V], int], at_once: int = 2) -> None:
        self.budget, self.size = budget, size
        self.bytes = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._gate = threading.BoundedSemaphore(at_once)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, computed where it is not kept."""
        found = self._find(key)
        if found is not None:
            return found[0]
        with self._gate:
            found = self._find(key)  # it may have been computed while this thread waited
            if found is not None:
                return found[0]
            value = make()
        self._keep(key, value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self.bytes = 0

    def _find(self, key: Hashable) -> tuple[V, int] | None:
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def _keep(self, key: Hashable, value: V) -> None:
        weight = self.size(value)
        with self._lock:
            self.bytes += weight - self._values.pop(key, (value, 0))[1]
            self._values[key] = value, weight
            while self.bytes > self.budget and len(self._values) > 1:
                _, (_, dropped) = self._values.popitem(last=False)
                self.bytes -= dropped
