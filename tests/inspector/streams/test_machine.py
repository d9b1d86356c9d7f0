"""Batches that come once, twice, late, in pieces, or not at all."""

from __future__ import annotations

import os
import random

import pytest

from inspector.streams.machine import Acknowledgement, Gap, LineBatch, LineConflict, receive
from tests.inspector.streams.simulator import Memory, Simulation

SEEDS = int(os.environ.get("STREAM_SEEDS", "500"))
SEED = os.environ.get("STREAM_SEED")


def test_new_lines_are_stored_and_acknowledged():
    store = Memory()
    assert receive(store, LineBatch(0, (b"a", b"b"))) == Acknowledgement(2, 2, 0)
    assert receive(store, LineBatch(2, (b"c",))) == Acknowledgement(3, 1, 0)
    assert store.lines == [b"a", b"b", b"c"]


def test_a_repeat_is_acknowledged_and_stored_once():
    store = Memory([b"a", b"b"])
    assert receive(store, LineBatch(1, (b"b", b"c"))) == Acknowledgement(3, 1, 1)
    assert receive(store, LineBatch(0, (b"a",))) == Acknowledgement(3, 0, 1)
    assert store.lines == [b"a", b"b", b"c"]


def test_other_content_under_a_known_number_is_a_conflict_and_nothing_of_its_batch_is_stored():
    store = Memory([b"a", b"b"])
    with pytest.raises(LineConflict, match="line 1 is already stored") as refused:
        receive(store, LineBatch(0, (b"a", b"x", b"c")))
    assert (refused.value.number, refused.value.expected) == (1, 2)
    assert store.lines == [b"a", b"b"]


def test_a_gap_is_refused_with_the_number_that_is_expected():
    with pytest.raises(Gap, match="the next one is 1") as refused:
        receive(Memory([b"a"]), LineBatch(3, (b"d",)))
    assert refused.value.expected == 1


def test_an_empty_batch_asks_how_far_the_stream_is():
    assert receive(Memory([b"a"]), LineBatch(0, ())) == Acknowledgement(1, 0, 0)


@pytest.mark.once
def test_every_order_of_faults_gives_the_same_store():
    seeds = [int(SEED)] if SEED else random.sample(range(2**32), SEEDS)
    for seed in seeds:
        try:
            Simulation(seed).run()
        except AssertionError as error:
            raise AssertionError(f"{error}; run again with STREAM_SEED={seed}") from error
