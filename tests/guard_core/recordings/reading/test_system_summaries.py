"""A summary behind the system prompt of logged requests is a compaction like one among their messages."""

import json

import pytest

from guard_core.checker import check
from guard_core.events import Role
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.recordings import read

BASE = "You are a coding assistant."
GIST = (
    "The user asked about src/lexer_0.py, src/lexer_1.py and src/lexer_2.py; token k is a bracket of kind k in each. "
    "The work on src/lexer_4.py is done, and the parser is untouched."
)


def log(system, *, kept=0, asks=False, base=BASE):
    """Five calls that fill the context, perhaps one for the summary, and four with `system` and `kept` messages."""
    records, history = [], []

    def call(prompt, answer, tokens):
        head = [{"role": "system", "content": prompt}] if prompt else []
        usage = {"prompt_tokens": tokens, "completion_tokens": 40}
        message = {"role": "assistant", "content": answer}
        request = {"model": "gpt-4o", "messages": [*head, *history]}
        response = {"model": "gpt-4o", "choices": [{"message": message}], "usage": usage}
        records.append({"request": request, "response": response})
        history.append(message)

    for turn in range(5):
        history.append({"role": "user", "content": f"Please read src/lexer_{turn}.py. " + "details " * 300})
        call(base, f"Token {turn} of src/lexer_{turn}.py is a bracket. " + "more words " * 200, 2_000 + 9_000 * turn)
    if asks:
        history.append({"role": "user", "content": "Summarize the conversation so far."})
        call(base, GIST, 47_000)
        del history[-2:]
    history[:] = history[-kept:] if kept else []
    for turn in range(5, 9):
        history.append({"role": "user", "content": f"Next, read src/lexer_{turn}.py, please."})
        call(system, f"Token {turn} is fine.", 3_000 + 200 * turn)
    return "\n".join(map(json.dumps, records)).encode()


@pytest.mark.parametrize("heading", ["Summary of the conversation so far:\n", "## Summary\n", "<summary>\n"])
@pytest.mark.parametrize(("kept", "asks"), [(2, False), (0, True), (2, True)], ids=["tail", "asked", "asked, tail"])
def test_a_summary_behind_a_short_system_prompt_is_a_compaction(heading, kept, asks):
    (built,) = read(log(f"{BASE}\n\n{heading}{GIST}", kept=kept, asks=asks)).sessions
    (item,) = built.compactions
    assert [message.role for message in item.messages] == [Role.SYSTEM]
    assert GIST in item.messages[0].parts[0].text
    assert [part.text for part in built.system] == [BASE]
    assert (item.summariser is not None) == asks
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    assert "request_lost" not in [finding.kind for finding in findings]  # a client's wish for a summary is none
    assert check(built, findings, facts.window, recorded_verdict(facts, findings)) == []


@pytest.mark.parametrize("base", [BASE, ""])
def test_a_conversation_that_begins_with_one_is_said_to_be_continued(base):
    first, second = read(log(f"{base}\n\nSummary of the conversation so far:\n{GIST}", base=base)).sessions
    for built, words in ((first, "perhaps continued in"), (second, "perhaps continued from")):
        facts = Facts.of(built)
        assert f"No compaction in the file, {words} another conversation" in (
            recorded_verdict(facts, recorded_findings(facts)).sentence
        )


@pytest.mark.parametrize(
    "system",
    [f"{BASE} Answer in French.", f"{BASE}\n\nToday is Friday.", f"Another prompt.\n\nSummary:\n{GIST}"],
)
def test_other_words_behind_a_prompt_are_part_of_it(system):
    sessions = read(log(system)).sessions
    assert {"".join(part.text for part in built.system) for built in sessions} == {BASE, system}


def test_words_about_summaries_behind_a_prompt_are_part_of_it_where_no_message_is_missing():
    (built,) = read(log(f"{BASE}\n\nSummary format: a list of at most five points.", kept=10)).sessions
    assert built.compactions == ()
    assert [call.prompt_tokens for call in built.calls][4:6] == [38_000, 4_000]


def test_each_summary_of_several_is_one_of_its_own():
    first = log(f"{BASE}\n\nSummary:\n{GIST}", kept=2).decode().splitlines()
    later = [json.loads(line) for line in first[-3:]]
    for record in later:
        record["request"]["messages"][0]["content"] = f"{BASE}\n\nSummary:\n{GIST} And lexer_5.py was read, too."
        del record["request"]["messages"][1:3]
    (built,) = read("\n".join([*first[:-3], *map(json.dumps, later)]).encode()).sessions
    assert len(built.compactions) == 2
    assert "lexer_5.py was read" in built.compactions[1].messages[0].parts[0].text
