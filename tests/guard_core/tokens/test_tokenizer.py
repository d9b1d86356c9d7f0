"""Tokenizer counts work offline, say so when they cannot, and survive hostile text."""

import subprocess
import sys
import time

import numpy as np
import pytest

from guard_core.errors import TokenizerUnavailable, UnknownName
from guard_core.tokens import tokenizer
from tests.builders import image, model, user


@pytest.fixture
def copied(tmp_path):
    """A copy of the vocabulary folder, without the vocabulary o200k_base."""
    for file in ("encodings.json", "cl100k_base.tiktoken"):
        (tmp_path / file).write_bytes((tokenizer.VOCABULARIES / file).read_bytes())
    return tmp_path


@pytest.mark.parametrize("encoding", tokenizer.ENCODINGS)
def test_it_counts_words_and_nothing(encoding):
    assert tokenizer.count(["hello world", "", "tiktoken is great!"], encoding) == [2, 0, 6]


def test_special_tokens_in_a_text_are_ordinary_characters():
    assert tokenizer.count(["<|endoftext|>"])[0] > 1


def test_lone_surrogates_and_nul_are_counted():
    assert tokenizer.count(["a\ud800b\x00c"])[0] > 0


@pytest.mark.parametrize("text", ["a" * 1_000_000, " " * 1_000_000, "漢字かな" * 250_000, "-" * 1_000_000], ids=len)
def test_endless_runs_cost_no_more_than_some_prose(text):
    begun = time.process_time()
    tokenizer.count(["".join(f"word {number} and then " for number in range(100_000))])
    prose = time.process_time() - begun
    begun = time.process_time()
    assert tokenizer.count([text])[0] > 0
    assert time.process_time() - begun < 20 * prose


def test_pieces_are_the_text_again_and_change_little():
    text = "word " * 900 + "x" * 5_001 + "\n" * 4_100 + "end"
    assert "".join(tokenizer.pieces(text)) == text
    assert list(map(len, tokenizer.pieces(text))) == [6_500, 2_000, 3_001, 2_000, 103]
    assert list(map(len, tokenizer.pieces("y" * 9_999))) == [tokenizer.LONGEST_RUN] * 4 + [1_999]
    assert list(map(len, tokenizer.pieces(" ".join(["y" * 1_999] * 3)))) == [5_999]
    assert tokenizer.count(["a" * 8_000]) == [1_000]


def test_a_text_is_counted_once():
    text = "".join(f"word {number} and then " for number in range(20_000))
    begun = time.process_time()
    (tokens,) = tokenizer.count([text])
    once = time.process_time() - begun
    begun = time.process_time()
    assert tokenizer.count([text] * 1_000) == [tokens] * 1_000
    assert time.process_time() - begun < 50 * once


def test_events_are_counted_part_by_part():
    events = (user("hello world"), model("hello", reasoning="hello world"), image(5_000))
    assert np.array_equal(tokenizer.count_events(events), [2, 3, 0])


def test_an_unknown_encoding_lists_the_known_ones():
    with pytest.raises(UnknownName, match="o200k_base, cl100k_base"):
        tokenizer.count(["a"], "p50k_base")


def test_a_missing_vocabulary_is_named(copied):
    with pytest.raises(TokenizerUnavailable, match=r"o200k_base\.tiktoken is missing"):
        tokenizer.load("o200k_base", copied)


def test_a_damaged_vocabulary_is_refused(copied):
    path = copied / "cl100k_base.tiktoken"
    path.write_bytes(path.read_bytes().replace(b"IQ== 0\n", b"IQ== 1\n", 1))
    with pytest.raises(TokenizerUnavailable, match="checksum"):
        tokenizer.load("cl100k_base", copied)


def test_the_package_tiktoken_is_loaded_only_when_counting():
    code = "import sys, guard_core.tokens.tokenizer; print('tiktoken' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "False\n"


def test_nothing_is_fetched():
    code = (
        "import sys; events = []; sys.addaudithook(lambda event, _: events.append(event))\n"
        "from guard_core.tokens import tokenizer; print(tokenizer.count(['a']))\n"
        "print([event for event in events if event.startswith(('socket.', 'urllib.', 'http.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n[]\n"
