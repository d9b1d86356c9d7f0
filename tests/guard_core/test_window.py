"""The buffer of a window: fixed for large windows, a share of small ones; profiles differ at the edge."""

import pytest

from guard_core.errors import SettingError
from guard_core.window import BufferRule, limits, parse_buffer

TABLE = [
    (4_000, 800, 3_200, 400, 300),
    (8_000, 1_600, 6_400, 800, 600),
    (128_000, 25_600, 102_400, 12_800, 9_600),
    (199_999, 39_999, 160_000, 19_999, 14_999),
    (1_000_000, 20_000, 980_000, 10_000, 7_500),
    (0, 0, 0, 0, 0),
]


@pytest.mark.parametrize(("window", "buffer", "threshold", "output", "words"), TABLE)
def test_the_limits_of_a_window(window, buffer, threshold, output, words):
    found = limits(window, BufferRule())
    assert (found.buffer, found.threshold, found.output_tokens, found.words) == (buffer, threshold, output, words)


def test_200000_is_large_in_current_and_small_in_early():
    assert limits(200_000, BufferRule()).threshold == 180_000
    assert limits(200_000, BufferRule(large_inclusive=False)).threshold == 160_000
    assert limits(200_001, BufferRule(large_inclusive=False)).threshold == 180_001


def test_a_buffer_by_hand_is_tokens_or_a_share():
    assert limits(100_000, BufferRule("12000")).threshold == 88_000
    assert limits(100_000, BufferRule("12.5%")).threshold == 87_500


@pytest.mark.parametrize("text", ["", "many", "-5", "120%", "1e3", "nan%", "٣"])
def test_a_wrong_buffer_is_refused_in_a_sentence(text):
    with pytest.raises(SettingError, match="buffer is auto, a number of tokens or a share"):
        parse_buffer(text)


def test_the_rule_is_told_in_words():
    assert BufferRule().words(200_000) == "fixed for windows >= 200,000"
    assert BufferRule().words(8_000).startswith("20% of the window")
