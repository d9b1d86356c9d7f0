"""The plugin in real ADK runs: a real Runner, a real session service, and a model that answers by a script."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import pytest

from guard_core import read
from guard_core.errors import GuardError, UnknownName
from guard_core.events import Role, TextPart
from guard_core.guarding.summarisers import AskedModel
from guard_core.ledger import Ledger
from guard_core.requests import materialise
from guard_core.rules.agreement import Agreement
from guard_core.rules.explanation import explain
from guard_core.sessions import GUARDS_WINDOW, Provenance
from guard_core.windows.models import UNKNOWN
from guard_core.windows.window_evidence import judge_session
from tests.waiting import PATIENCE, until

MARK = "[Previous conversation summary]"
WATERMARK, REAL, STORED = (
    f"__context_guard_{name}_coder" for name in ("contents_at_compaction", "real_tokens", "summary")
)

# ADK marks its own plugin and model interfaces as experimental, and its database layer warns of its own columns.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def adk() -> ModuleType:
    """Its agents, loaded here: every process collects this file, one runs it."""
    from tests.guard_core.integrations import agents

    return agents


async def test_a_summary_takes_the_place_of_the_history_in_all_later_turns(adk):
    llm = adk.Scripted(answers=[adk.call(60_000), "done", "again", "more"], sent=[], asked=[], count=adk.by_size(2.0))
    agents = adk.Agents(llm, adk.guarded(max_tokens=20_000))
    await agents.say("Read the log.")
    assert len(llm.asked) == 1
    assert "user: Read the log." in llm.asked[0]
    assert MARK in adk.texts(llm.sent[1])[0]
    assert adk.SUMMARY in adk.texts(llm.sent[1])[0]
    assert "Read the log." in adk.texts(llm.sent[1])[-1], "the continuation quotes the user's request"
    await agents.say("And now?")
    assert MARK in adk.texts(llm.sent[2])[0]
    assert adk.texts(llm.sent[2])[1:] == ["done", "And now?"], "what the summary stands for is not sent again"
    await agents.say("Once more.")
    assert len(llm.asked) == 1, "nothing is compacted twice without growth"
    state = await agents.state()
    assert state[STORED] == adk.SUMMARY
    assert state[WATERMARK] == 3
    assert state[REAL] == adk.by_size(2.0)(adk.LlmRequest(contents=llm.sent[3]))


async def test_the_loop_of_the_field_report_does_not_come_back(adk):
    """228,967 tokens against a threshold of 120,000: without a watermark every later step compacted again."""
    counts = iter([228_967, 8_756, 8_900, 9_000, 9_100])
    llm = adk.Scripted(
        answers=[adk.call(400_000), "done", adk.call(100), "done", "done"],
        sent=[],
        asked=[],
        count=lambda request: next(counts),
    )
    agents = adk.Agents(llm, adk.guarded(max_tokens=150_000))
    await agents.say("Find the fault.")
    assert len(llm.asked) == 1
    for words in ("Go on.", "And then?"):
        await agents.say(words)
    assert len(llm.asked) == 1
    assert (await agents.state())[REAL] == 9_100
    assert all(MARK in adk.texts(contents)[0] for contents in llm.sent[1:])


async def test_a_result_that_arrives_between_two_counts_fires_by_the_calibrated_estimate(adk):
    """The timing gap: the last count is far below the threshold, the result that came after it is not."""
    llm = adk.Scripted(answers=["hello", adk.call(200_000), "done"], sent=[], asked=[], count=adk.by_size(2.0))
    agents = adk.Agents(llm, adk.guarded(max_tokens=100_000))
    await agents.say("Hello. " + "w" * 4_000)
    assert (await agents.state())[REAL] < 10_000
    await agents.say("Read it.")
    assert len(llm.asked) == 1
    assert MARK in adk.texts(llm.sent[2])[0]


async def test_no_request_begins_with_a_call_of_the_model(adk):
    """Gemini refuses those."""
    llm = adk.Scripted(answers=[adk.call(10), "done"], sent=[], asked=[])
    plugin = adk.ContextGuardPlugin()
    plugin.add("coder", policy="autogen-buffered", buffer_size=2, max_tokens=20_000)
    await adk.Agents(llm, plugin).say("Read it.")
    assert [content.role for content in llm.sent[1]] == ["user", "model", "user"]
    assert adk.texts(llm.sent[1])[0] == "[Earlier messages were left out.]"


async def test_parallel_results_a_failing_summariser_and_todos(adk):
    llm = adk.Scripted(
        answers=[adk.call(30_000, 30_000), "done"], sent=[], asked=[], count=adk.by_size(2.0), fails=True
    )
    agents = adk.Agents(llm, adk.guarded(max_tokens=20_000))
    await agents.service.create_session(
        app_name="agents",
        user_id="u",
        session_id="s",
        state={"todos": [{"content": "mend it", "status": "pending", "activeForm": "mending"}]},
    )
    await agents.say("Read both.")
    assert "- [pending] mend it" in llm.asked[0]
    assert adk.texts(llm.sent[1])[0].startswith(MARK), "a mechanical summary"
    assert "Read both." in adk.texts(llm.sent[1])[0]


async def test_a_session_goes_on_in_another_process(adk, tmp_path):
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    # Both before the file is there: ADK never closes the connection by which it looks at one that is.
    first, second = (SqliteSessionService(str(tmp_path / "s.db")) for _ in range(2))
    llm = adk.Scripted(answers=[adk.call(60_000), "done"], sent=[], asked=[], count=adk.by_size(2.0))
    await adk.Agents(llm, adk.guarded(max_tokens=20_000), first).say("Read the log.")
    other = adk.Scripted(answers=["yes"], sent=[], asked=[], count=adk.by_size(2.0))
    again = adk.Agents(other, adk.guarded(max_tokens=20_000), second)
    await again.say("Still there?")
    assert adk.texts(other.sent[0])[0] == adk.texts(llm.sent[1])[0]
    assert adk.texts(other.sent[0])[1:] == ["done", "Still there?"]
    assert not other.asked


async def test_agents_of_one_session_are_kept_apart_and_others_pass_untouched(adk):
    helper_llm = adk.Scripted(model="helper", answers=["helped"], sent=[], asked=[], count=adk.by_size(2.0))
    helper = adk.LlmAgent(name="helper", model=helper_llm)
    transfer = [
        adk.types.Part(function_call=adk.types.FunctionCall(name="transfer_to_agent", args={"agent_name": "helper"}))
    ]
    llm = adk.Scripted(answers=[adk.call(60_000), transfer], sent=[], asked=[], count=adk.by_size(2.0))
    agents = adk.Agents(llm, adk.guarded(max_tokens=20_000), sub_agents=[helper])
    await agents.say("Read the log.")
    assert helper_llm.sent
    assert not any(MARK in text for text in adk.texts(helper_llm.sent[0]))
    state = await agents.state()
    assert {key for key in state if key.startswith("__context_guard_")} == {
        f"__context_guard_{name}_coder"
        for name in ("summary", "summarized_at", "contents_at_compaction", "real_tokens", "last_heuristic")
    }


async def test_any_other_policy_guards_too_and_keeps_its_state_in_the_session(adk):
    llm = adk.Scripted(
        answers=[adk.call(40_000), adk.call(41_000), adk.call(42_000), "done", "yes"],
        sent=[],
        asked=[],
        count=adk.by_size(2.0),
    )
    agents = adk.Agents(
        llm, adk.guarded(policy="anthropic-clear-tool-uses", max_tokens=200_000, trigger=20_000, keep=1)
    )
    await agents.say("Read the three.")
    responses = [part.function_response for content in llm.sent[3] for part in content.parts if part.function_response]
    assert [len(str(item.response)) > 10_000 for item in responses] == [False, False, True]
    await agents.say("All of them?")
    assert [content.role for content in llm.sent[4]] == [content.role for content in llm.sent[3]] + ["model", "user"]
    assert "__guard_state_coder" in await agents.state()


async def test_a_guard_that_fails_lets_the_request_pass(adk, caplog):
    class Broken:
        name = "broken"

        def summarise(self, request: Any) -> Any:
            raise RuntimeError("no")

    llm = adk.Scripted(answers=[adk.call(60_000), "done"], sent=[], asked=[], count=adk.by_size(2.0))
    agents = adk.Agents(llm, adk.guarded(max_tokens=20_000, summarizer=Broken()))
    await agents.say("Read the log.")
    assert adk.texts(llm.sent[1])[0] == "Read the log."
    assert "sent as it is" in caplog.text


@pytest.mark.parametrize("policy", ["", "codex"])
async def test_a_recording_has_what_was_sent_and_changes_nothing(adk, tmp_path, policy):
    sent = []
    for number, record_to in enumerate((None, lambda: tmp_path / "session.jsonl")):
        answers = [adk.call(9_000), adk.call(18_000), "done", adk.call(18_000), "again", "more"]
        llm = adk.Scripted(answers=answers, sent=[], asked=[], count=adk.by_size(1.6))
        plugin = adk.guarded(record_to, policy=policy, max_tokens=20_000)
        agents = adk.Agents(llm, plugin)
        for words in ("Read the log.", "And the other one.", "Thanks."):
            await agents.say(words)
        await agents.runner.close()
        sent.append([[content.model_dump(exclude_none=True) for content in contents] for contents in llm.sent])
        assert len(llm.asked) == 1, number
    assert sent[0] == sent[1]
    (session,) = read(tmp_path / "session.jsonl").sessions
    assert (session.agent, session.model, session.title) == ("coder", "scripted", "Read the log.")
    assert [call.prompt_tokens for call in session.calls] == [
        adk.by_size(1.6)(adk.LlmRequest(contents=contents)) for contents in llm.sent
    ]
    assert all(session.events[call.response].role is Role.MODEL for call in session.calls)
    assert [item.trigger for item in session.compactions if item.trigger] == ["auto"]
    ledger = Ledger.of(session)
    for step, contents in enumerate(llm.sent):
        view, epoch = ledger.recorded_view(step)
        recorded = [part for event in materialise(view, session, epoch) for part in event.parts]
        texts = [part.text for content in contents for part in content.parts if part.text]
        assert [part.text for part in recorded if isinstance(part, TextPart)] == texts, step
    assert {item.verdict for item in explain(session, ledger).compactions} == {Agreement.AGREES}


async def test_a_recording_says_that_the_window_was_looked_up_and_not_given(adk, tmp_path):
    for number, max_tokens in enumerate((0, 128_000)):
        llm = adk.Scripted(answers=["done"], sent=[], asked=[], count=adk.by_size(1.6))
        path = tmp_path / f"{number}.jsonl"
        agents = adk.Agents(llm, adk.guarded(lambda path=path: path, max_tokens=max_tokens))
        await agents.say("Read the log.")
        await agents.runner.close()
        (session,) = read(path).sessions
        given = max_tokens > 0
        assert session.window.source == (Provenance.USER if given else Provenance.ASSUMED)
        assert session.window.note == (GUARDS_WINDOW if given else UNKNOWN)
        assert judge_session(session).status == ("known" if given else "assumed")


async def test_another_history_is_another_recording_and_a_failing_one_is_only_logged(adk, tmp_path, caplog):
    paths = iter([tmp_path / "0.jsonl", tmp_path / "1.jsonl", tmp_path / "1.jsonl"])
    llm = adk.Scripted(answers=["one", "two", "three"], sent=[], asked=[], count=adk.by_size(2.0))
    plugin = adk.guarded(lambda: next(paths), policy="none", max_tokens=20_000)
    agents = adk.Agents(llm, plugin, include_contents="none")  # every turn begins without the ones before
    await agents.say("First.")
    await agents.say("Second.")
    assert [read(tmp_path / f"{n}.jsonl").sessions[0].title for n in (0, 1)] == ["First.", "Second."]
    assert "not recorded" not in caplog.text
    await agents.say("Third.")
    assert "a call of agent coder was not recorded" in caplog.text
    assert adk.texts(llm.sent[2])[0] == "Third."


def test_what_cannot_be_is_refused(adk):
    with pytest.raises(GuardError, match="threshold and sliding"):
        adk.guarded(strategy="hope")
    with pytest.raises(UnknownName):
        adk.guarded(policy="hope")


async def test_words_with_half_a_character_are_guarded_like_any_others_and_sent_as_they_were(adk):
    """A file's name as Python gives it where its bytes are no UTF-8: the guard failed from then on."""
    llm = adk.Scripted(answers=[adk.call(60_000), "done"], sent=[], asked=[], count=adk.by_size(2.0))
    words = "Read caf\udce9.log."
    agents = adk.Agents(llm, adk.guarded(max_tokens=20_000))
    await agents.say(words)
    assert adk.texts(llm.sent[0]) == [words]
    assert len(llm.asked) == 1
    assert MARK in adk.texts(llm.sent[1])[0]


class Slow:
    """A recording whose end takes as long as it is held."""

    def __init__(self, held: threading.Event) -> None:
        self._held, self.is_closed = held, False

    def write(self, _: bytes) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None:
        self._held.wait(PATIENCE)
        self.is_closed = True


async def test_of_many_conversations_the_idle_ones_are_ended_and_no_agent_waits_for_the_end_of_another(adk):
    from guard_core.integrations.adk_recording import MOST_OPEN

    more, held, files = 3, threading.Event(), []
    plugin = adk.guarded(lambda: files.append(Slow(held)) or files[-1], policy="none", max_tokens=20_000)
    for number in range(MOST_OPEN + more):
        llm = adk.Scripted(answers=["done"] * 2, sent=[], asked=[], count=adk.by_size(2.0))
        agents = adk.Agents(llm, plugin, session=str(number))
        await agents.say("Read the log.")
        if not number:
            first = agents
    assert not any(file.is_closed for file in files), "and yet all agents were answered"
    held.set()
    until(lambda: [file.is_closed for file in files] == [True] * more + [False] * MOST_OPEN)
    await first.say("Go on.")
    assert len(files) == MOST_OPEN + more + 1, "one that goes on later is recorded anew"
    await plugin.close()
    assert all(file.is_closed for file in files)


async def test_of_an_empty_summary_no_content_is_sent(adk):
    llm = adk.Scripted(answers=[adk.call(9_000)] * 3 + ["done"], sent=[], asked=[], count=lambda request: 99_000)
    summarizer = AskedModel(lambda prompt: "")
    plugin = adk.guarded(policy="kimi-cli", max_tokens=100_000, summarizer=summarizer)
    await adk.Agents(llm, plugin).say("Read the log.")
    assert len(llm.sent[-1]) < 7, "compacted"
    assert all(part.text != "" for content in llm.sent[-1] for part in content.parts)
