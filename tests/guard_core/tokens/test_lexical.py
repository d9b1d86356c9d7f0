"""Classes of bytes say about how many tokens a text has."""

import numpy as np
import pytest

from guard_core.events import part_text
from guard_core.simulator.samples import SAMPLES
from guard_core.tokens.lexical import lexical_tokens
from guard_core.tokens.tokenizer import count
from tests.builders import bundled


def test_no_text_has_no_tokens():
    assert lexical_tokens("") == 0


def test_digits_make_more_tokens_than_letters():
    assert lexical_tokens("7" * 400) == 4 * lexical_tokens("a" * 400)


def test_text_outside_ascii_and_broken_surrogates_are_counted_by_their_bytes():
    assert lexical_tokens("漢" * 80) == 60
    assert lexical_tokens("\ud800" * 80) == 60


def test_a_drawn_rule_costs_next_to_nothing():
    assert lexical_tokens("total\n" + "─" * 300) == lexical_tokens("total\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_nearer_to_a_tokenizer_than_bytes_are(name):
    texts = ["".join(part_text(part) for part in event.parts) for event in bundled(name).events]
    texts = [text for text in texts if len(text) > 400]
    real = np.array(count(texts, "o200k_base"))
    by_class = np.array([lexical_tokens(text) for text in texts]) / real
    by_bytes = np.array([len(text.encode()) / 4 for text in texts]) / real
    assert np.abs(np.log(by_class)).mean() < max(0.12, np.abs(np.log(by_bytes)).mean())
