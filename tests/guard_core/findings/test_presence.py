"""Texts in which words cannot be are known by their letters and digits."""

import cProfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.checker.story import heard
from guard_core.findings import request_words
from guard_core.ledger import Ledger
from guard_core.quoting import letters_of, may_say, normalised, readings, runs_of, says
from tests.builders import model, session, user
from tests.guard_core.findings.cases import compaction

LETTERS = ("ab", "AB1", "K", "ß", "ſ", "ﬁ", "İ", "é", "u", "n", "9")
SIGNS = (" ", "\n", "> ", "*", "**", "_", "`", '"', "'", "-", "…", ".", ",")
ESCAPES = ("\\", "\\n", "\\u0061", "\\*", "&", "&amp;", "&#98;", "&lt;")
TEXTS = st.lists(st.sampled_from((*LETTERS, *SIGNS, *ESCAPES)), max_size=30).map("".join)


@given(TEXTS, st.data())
def test_a_text_that_says_some_words_has_their_letters(text, data):
    reading = data.draw(st.sampled_from(readings(text).split("\n")))
    start = data.draw(st.integers(0, len(reading)))
    words = reading[start : data.draw(st.integers(start, len(reading)))]
    assert says(readings(text), words)
    assert may_say(letters_of(text), runs_of(words))


@given(TEXTS, TEXTS)
def test_words_are_in_no_text_that_lacks_their_letters(text, words):
    sought = readings(words)
    assert may_say(letters_of(text), runs_of(sought)) or not says(readings(text), sought)


@given(TEXTS)
def test_signs_are_the_same_beside_letters_of_other_scripts(text):
    assert normalised(f"{text} é") == f"{normalised(text)} é".strip()


@pytest.mark.parametrize(
    "quoted",
    ["1. Critical: Duplicate Code - Three functions", "- 1. Critical: Duplicate Code\n- Three functions - are"],
)
def test_words_are_quoted_whose_lines_are_put_together_with_dashes_or_listed(quoted):
    asked = "1. Critical: Duplicate Code\n\n  Three functions"
    assert says(readings(quoted), readings(asked))
    assert any(one in text for one in heard(asked) for text in heard(quoted))
    assert not says(readings("1. Critical: Duplicate Code-Three functions"), readings(asked))


def test_no_function_is_called_for_each_run_of_signs():
    profile = cProfile.Profile()
    assert profile.runcall(normalised, "-- ''\n" * 500) == " ".join(["'"] * 500)
    assert sum(entry.callcount for entry in profile.getstats()) < 50


def test_only_texts_that_may_hold_a_request_are_read_in_all_ways():
    ask = "Move the *orchard* importer to the new queue"
    events = (user(ask), *(model(f"working on `part_{number}`") for number in range(60)), user("and then?"))
    log = session(*events, compactions=(compaction(40),))
    profile = cProfile.Profile()
    (request,) = profile.runcall(request_words, log, Ledger.of(log), lambda: log.events)
    assert request.events == (0,)
    calls = {entry.code.co_name: entry.callcount for entry in profile.getstats() if hasattr(entry.code, "co_name")}
    assert calls["readings"] < 5
