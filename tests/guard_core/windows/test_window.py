"""The buffer of a window: fixed for large windows, a share of small ones; profiles differ at the edge."""

import pytest

from guard_core.errors import SettingError
from guard_core.windows.window import BufferRule, limits, parse_buffer, parse_window

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
    limits_found = limits(window, BufferRule())
    assert (limits_found.buffer, limits_found.threshold, limits_found.output_tokens, limits_found.words) == (
        buffer,
        threshold,
        output,
        words,
    )


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


@pytest.mark.parametrize("text", ["200000", "200,000", "200_000", " 200 000 ", "200k", "200 K", "0200000", "0.2M"])
def test_a_window_is_typed_in_several_ways(text):
    assert parse_window(text) == 200_000
    assert parse_window("1M") == 1_000_000


@pytest.mark.parametrize("text", ["", "k", "-5", "many", "٣٠٠", "9" * 99, "200k k"])
def test_a_window_that_is_no_number_of_tokens_is_refused(text):
    with pytest.raises(SettingError, match="a window is a number of tokens such as 200000, 200k or 1M"):
        parse_window(text)


@pytest.mark.parametrize("text", ["0", "255", "100000001", "200M"])
def test_a_window_out_of_all_proportion_is_refused_with_what_is_allowed(text):
    with pytest.raises(SettingError, match="has 256 to 100,000,000 tokens"):
        parse_window(text)
