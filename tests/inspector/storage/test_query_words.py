"""What is typed into a search, and the words shown around a hit."""

from __future__ import annotations

import pytest

from inspector.storage.query_words import parse, snippet


def marked(text: str, query: str) -> list[str]:
    return [piece.text for piece in snippet(text, parse(query)) if piece.hit]


def shown(text: str, query: str) -> str:
    return "".join(piece.text for piece in snippet(text, parse(query)))


def test_words_stand_alone_and_quotes_hold_words_together():
    assert [term.tokens for term in parse('deploy "two words" last').terms] == [
        ("deploy",),
        ("two", "words"),
        ("last",),
    ]


def test_a_name_with_a_separator_is_its_words_in_a_row():
    assert parse("prompt_tokens.max").terms[0].tokens == ("prompt", "tokens", "max")


def test_short_words_and_quoted_words_are_taken_whole():
    assert [term.prefix for term in parse('go "deploy" deploy').terms] == [False, False, True]


@pytest.mark.parametrize(
    "text", ["", " ", '"', '"" "', "***", "-- ; ()", "\x00", "\ud800", "' OR 1=1 --", "a" * 5000, "NEAR(a b)"]
)
def test_operators_and_rubbish_are_words_or_nothing(text):
    query = parse(text)
    assert all(token.isalnum() for term in query.terms for token in term.tokens)


def test_a_hit_is_marked_in_the_words_around_it():
    text = "x " * 400 + "the Deployment failed twice" + " y" * 400
    assert marked(text, "deploy failed") == ["Deployment", "failed"]
    assert shown(text, "deploy").startswith("… x")
    assert len(shown(text, "deploy")) < 400


@pytest.mark.parametrize("words", ["transcript ", "subscription, ", "größte "])
def test_the_words_around_a_hit_are_whole(words):
    text = words * 40 + "deploy " + words * 60
    assert set(shown(text, "deploy").split()) == {"…", words.strip(), "deploy"}, shown(text, "deploy")


def test_the_rest_of_a_word_is_not_marked_as_a_hit():
    assert marked("transcript" + " x" * 46 + "  script", "script") == ["script"]


def test_text_without_spaces_is_cut_in_its_middle():
    assert len(shown("a" * 5000, "nowhere")) == 202
    assert shown("压" * 500 + " deploy " + "缩" * 500, "deploy").startswith("… 压")


def test_accents_and_case_do_not_hide_a_hit():
    assert marked("Le café est fermé", "CAFE") == ["café"]
    assert marked("THE CAFE", "café") == ["CAFE"]


def test_a_word_is_not_marked_inside_another():
    assert marked("redeploy deployed", "deploy") == ["deployed"]


def test_where_no_term_can_be_placed_the_beginning_is_shown():
    assert shown("only this", "other") == "only this"
