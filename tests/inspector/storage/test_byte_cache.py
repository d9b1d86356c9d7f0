"""A cache bounded by bytes, that many threads ask at once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from inspector.storage import byte_cache
from inspector.storage.byte_cache import ByteCache


def test_a_value_is_made_once():
    cache, computed = ByteCache(100, len), []
    for _ in range(3):
        assert cache.get("a", lambda: computed.append(1) or "text") == "text"
    assert computed == [1]


def test_the_values_used_longest_ago_go_first():
    cache = ByteCache(10, len)
    cache.get("a", lambda: "aaaa")
    cache.get("b", lambda: "bbbb")
    cache.get("a", lambda: "not made again")
    cache.get("c", lambda: "cccc")
    assert cache.bytes == 8
    assert cache.get("a", lambda: "made again") == "aaaa"
    assert cache.get("b", lambda: "made again") == "made again"


def test_the_newest_value_stays_whatever_its_size():
    cache = ByteCache(10, len)
    cache.get("a", lambda: "a")
    assert cache.get("long", lambda: "x" * 50) == "x" * 50
    assert (cache.bytes, cache.get("long", lambda: "")) == (50, "x" * 50)


def test_a_value_beyond_the_budget_is_let_go_before_another_is_made():
    cache = ByteCache(10, len)
    cache.get("long", lambda: b"x" * 50)
    held = []
    cache.get("other", lambda: held.append((cache.bytes, len(cache))) or b"other")
    assert held == [(0, 0)]
    cache.get("third", lambda: held.append((cache.bytes, len(cache))) or b"third")
    assert held[1] == (5, 1)


def test_a_value_that_several_ask_for_at_once_is_made_once():
    cache, computed, gate = ByteCache(100, len, at_once=2), [], threading.Event()

    def make() -> str:
        computed.append(1)
        gate.wait()
        return "text"

    threads = [threading.Thread(target=lambda: cache.get("a", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)  # all of them have asked by then, or one finds it made
    gate.set()
    for thread in threads:
        thread.join()
    assert computed == [1]


def test_what_fails_is_not_kept():
    cache = ByteCache(10, len)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 / 0)
    assert cache.get("a", lambda: "now") == "now"


def test_few_are_made_at_a_time():
    cache, running, most, computed = ByteCache(1_000, len, at_once=2), set(), [], []
    lock = threading.Lock()

    def make(key: str) -> str:
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))
        computed.append(key)
        sum(range(20_000))
        with lock:
            running.discard(threading.get_ident())
        return key

    threads = [
        threading.Thread(target=lambda key=str(number % 8): cache.get(key, lambda: make(key))) for number in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 2
    assert set(computed) == {str(number) for number in range(8)}


def test_what_is_not_used_for_a_while_is_let_go():
    cache = ByteCache(100, len)
    cache.get("a", lambda: "aaaa")
    between = time.monotonic()
    cache.get("b", lambda: "bbbb")
    assert cache.forget_unused(between) == 1
    assert cache.bytes == 4
    assert cache.get("a", lambda: "made again") == "made again"
    cache.get("b", lambda: "not made again")
    assert cache.forget_unused(time.monotonic()) == 2
    assert (cache.bytes, len(cache)) == (0, 0)


def test_of_a_session_that_grows_earlier_revisions_are_forgotten_a_while_after_a_later_one(monkeypatch):
    now = 100.0
    monkeypatch.setattr(byte_cache.time, "monotonic", lambda: now)
    cache = ByteCache(10**9, len, revision=1)
    cache.get(("other", 1, "a"), lambda: "x")
    for revision in range(1, 40):
        now += 0.5
        cache.get(("grows", revision, "a"), lambda: "x" * 1_000)
        cache.get(("grows", revision, "b"), lambda: "x" * 1_000)
        cache.use(lambda key: key[0] == "grows")  # its page is open
    assert cache.get(("grows", 36, "a"), lambda: "made again") != "made again"  # what still reads it
    assert cache.get(("other", 1, "a"), lambda: "made again") == "x"
    assert len(cache) < 16
    assert cache.bytes < 16_000
    now += 3
    cache.use(lambda key: key[0] == "grows")
    cache.forget_unused(now - byte_cache.IDLE_SECONDS)  # as every few seconds
    assert len(cache) == 3
    assert cache.bytes == 2_001


def test_a_process_lets_go_of_values_by_itself():
    """In a process of its own, as the times of a process count for all of its caches."""
    code = (
        "import time\n"
        "from inspector.storage import byte_cache\n"
        "byte_cache.LOOK_EVERY = 0.05\n"
        "byte_cache._KEEPER.idle_seconds = 0.1\n"
        "cache = byte_cache.ByteCache(10**9, len)\n"
        "for round in range(2):\n"  # the second time its keeper starts again
        "    cache.get(round, lambda: bytes(10**6))\n"
        "    end = time.monotonic() + 60\n"
        "    while cache.bytes and time.monotonic() < end: time.sleep(0.02)\n"
        "    assert cache.bytes == 0\n"
        "    time.sleep(0.2)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_freed_memory_goes_back_to_the_system():
    """Small values between two that stay: the end of the heap is not free, so only a trim gives them back."""
    code = (
        "import resource\n"
        "from inspector.project import memory\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "before = resident()\n"
        "values = [bytes(2_000) for _ in range(50_000)]\n"
        "held = values[::1_000]\n"
        "assert resident() - before > 80_000_000\n"
        "del values\n"
        "memory.trim()\n"
        "assert resident() - before < 20_000_000\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_column_takes_the_memory_of_the_one_before_and_all_of_it_goes_back_in_the_end():
    code = (
        "import resource\n"
        "from inspector.project import memory\n"
        "memory.keep_little(memory.COLUMN, memory.SPARE)\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def make(): return bytearray(b'x' * 400_000)\n"
        "make()\n"
        "before, held = faults(), memory.resident()\n"
        "for _ in range(200): make()\n"
        "assert faults() - before < 200 * 400_000 / 4096 / 4\n"  # anew, each has a hundred pages
        "kept = [make() for _ in range(100)]\n"
        "del kept\n"
        "memory.give_back()\n"
        "assert memory.resident() - held < memory.SPARE + 2_000_000\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_value_takes_the_memory_of_the_one_that_made_room_for_it():
    """As that of an analysis does, with which the next one that a changed setting asks for is made."""
    code = (
        "import resource\n"
        "from inspector.project import memory\n"
        "from inspector.storage import byte_cache\n"
        "memory.keep_little(memory.COLUMN, memory.SPARE)\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def make(): return [bytearray(b'x' * 400_000) for _ in range(50)]\n"
        "cache = byte_cache.ByteCache(1, lambda value: 20_000_000)\n"
        "cache.get(0, make)\n"
        "behind = bytearray(600_000)\n"  # in use: the value is not at the end of the heap, which alone is given back
        "before, held = faults(), memory.resident()\n"
        "for number in range(1, 11): cache.get(number, make)\n"
        "assert faults() - before < 10 * 20_000_000 / 4096 / 4\n"  # anew, each has five thousand pages
        "assert memory.resident() - held < 10_000_000\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_value_that_made_room_leaves_memory_although_it_refers_to_itself():
    code = (
        "import gc\n"
        "from inspector.project import memory\n"
        "from inspector.storage import byte_cache\n"
        "gc.disable()\n"  # as good as a process that makes few objects
        "memory.keep_little()\n"
        "class Value:\n"
        "    def __init__(self): self.data, self.me = bytearray(b'x' * 30_000_000), self\n"
        "cache = byte_cache.ByteCache(1, lambda value: 1)\n"
        "before = memory.resident()\n"
        "for number in range(10): cache.get(number, Value)\n"
        "assert memory.resident() - before < 120_000_000\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_who_asks_for_a_value_does_not_wait_for_a_search_for_garbage():
    """It is the keeper's thread that searches, once the value is there; less garbage than is crowded can wait."""
    code = (
        "import gc, threading, time\n"
        "from inspector.project import memory\n"
        "from inspector.storage import byte_cache\n"
        "gc.disable()\n"
        "memory.keep_little()\n"
        "memory.note_start()\n"
        "byte_cache.LOOK_EVERY = 0.05\n"
        "searchers, gone = [], []\n"
        "gc.callbacks.append(lambda phase, info: searchers.append(threading.current_thread().name))\n"
        "class Value:\n"
        "    def __init__(self): self.data, self.me = bytearray(b'x' * 22_000_000), self\n"
        "    def __del__(self): gone.append(self)\n"
        "cache = byte_cache.ByteCache(1, lambda value: 1)\n"
        "for number in range(2): cache.get(number, Value)\n"
        "end = time.monotonic() + 60\n"
        "while not gone and time.monotonic() < end: time.sleep(0.02)\n"
        "assert gone and set(searchers) == {'caches'}, searchers\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Held:
    """Something large that somebody else may hold, too."""


def test_what_somebody_still_holds_is_not_made_a_second_time():
    cache: ByteCache[Held] = ByteCache(10, lambda value: 6)
    held = cache.get("a", Held)
    cache.get("b", Held)  # makes the first go
    assert cache.get("a", Held) is held


def test_what_nobody_holds_is_made_again():
    cache: ByteCache[Held] = ByteCache(10, lambda value: 6)
    first = id(cache.get("a", Held))
    computed = []
    cache.get("b", Held)
    cache.get("a", lambda: computed.append(first) or Held())
    assert computed


def test_what_is_kept_for_good_is_looked_after_by_no_thread():
    code = (
        "import threading\n"
        "from inspector.storage import byte_cache\n"
        "byte_cache.keep_for_good()\n"
        "byte_cache.ByteCache(10, lambda value: 1).get(1, object)\n"
        "assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
