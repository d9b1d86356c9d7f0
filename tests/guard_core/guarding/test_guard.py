"""A guard over the message lists of real APIs: what is left as it was is the very message, what is changed is valid."""

from __future__ import annotations

import asyncio
import copy

import pytest
from pydantic import BaseModel

from guard_core import Guard
from guard_core.errors import GuardError, SettingError
from guard_core.guarding.summarisers import AskedModel, Prompt
from guard_core.summaries.base import Todo

SYSTEM = {"role": "system", "content": "You mend programs."}


def turn(number: int, size: int = 400) -> list[dict]:
    """A user's words, a call with its result, an answer: of OpenAI's Chat Completions."""
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "f{number}"}}'},
    }
    return [
        {"role": "user", "content": f"request {number} " + "u" * 40},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r" * size},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def blocks(number: int, size: int = 400) -> list[dict]:
    """The same in Anthropic's blocks."""
    return [
        {"role": "user", "content": [{"type": "text", "text": f"request {number}"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": f"f{number}"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "r" * size}]},
        {"role": "assistant", "content": [{"type": "text", "text": f"answer {number}"}]},
    ]


def drive(guard: Guard, history: list[dict], added: list[dict], tokens: int | None = 100, **call) -> list[dict]:
    """One call over the history with more at its end."""
    history += added
    sent = guard.before_call(history, **call)
    guard.after_call(tokens)
    return sent


def test_below_the_threshold_the_very_messages_are_sent():
    guard = Guard("contextguard", window=200_000)
    history = [SYSTEM]
    for number in range(3):
        sent = drive(guard, history, turn(number))
        assert all(one is other for one, other in zip(sent, history, strict=True))


def test_at_the_threshold_a_summary_takes_the_place_of_the_history_and_stays():
    asked: list[Prompt] = []

    def summarise(prompt: Prompt) -> str:
        asked.append(prompt)
        return "The user wants request 0 done."

    guard = Guard("contextguard", window=2_000, summarizer=AskedModel(summarise))
    history = [SYSTEM]
    sent = drive(guard, history, turn(0, 3_000)[:3])
    assert sent[0] is SYSTEM
    assert [message["role"] for message in sent[1:]] == ["user", "user"]
    assert "The user wants request 0 done." in sent[1]["content"]
    assert "request 0" in sent[2]["content"]  # the continuation quotes the request
    assert len(asked) == 1
    assert "user: request 0" in asked[0].user
    assert "user: [tool read returned a result]" in asked[0].user
    assert "Keep the summary under" in asked[0].system
    following = drive(guard, history, turn(0)[3:])
    assert following[1] == sent[1]
    assert following[2:] == history[4:]
    assert len(asked) == 1, "nothing is compacted twice without growth"


def test_the_history_of_the_agent_is_never_changed():
    history = [SYSTEM, *turn(0, 60_000), *turn(1, 60_000), *turn(2, 10)]
    before = copy.deepcopy(history)
    guard = Guard("anthropic-clear-tool-uses", window=200_000, trigger=1_000, keep=1)
    guard.before_call(history)
    assert history == before


def test_cleared_results_are_written_in_the_dialect_and_everything_else_is_as_it_was():
    for dialect, build in (("openai", turn), ("anthropic", blocks)):
        guard = Guard("anthropic-clear-tool-uses", window=200_000, trigger=1_000, keep=1, dialect=dialect)
        history: list[dict] = []
        for number in range(4):
            sent = drive(guard, history, build(number, 6_000), tokens=4_000 * (number + 1))
        assert len(sent) == len(history)
        changed = [place for place, (one, other) in enumerate(zip(sent, history, strict=True)) if one is not other]
        assert changed, dialect
        for place in changed:
            old, new = history[place], sent[place]
            assert new["role"] == old["role"]
            if dialect == "openai":
                assert new["tool_call_id"] == old["tool_call_id"]
                assert len(new["content"]) < 200
            else:
                (block,) = new["content"]
                assert (block["type"], block["tool_use_id"]) == ("tool_result", old["content"][0]["tool_use_id"])
                assert len(block["content"]) < 200


def test_a_refused_request_is_compacted_where_the_policy_does_that():
    guard = Guard("claude-code", window=200_000, summarizer=AskedModel(lambda prompt: "short"))
    history = [*turn(0), *turn(1), *turn(2)]
    sent = guard.before_call(history)
    assert sent == history
    again = guard.refused()
    assert again is not None
    assert {"role": "user", "content": "short"} in again
    assert sent[0] not in again
    guard.after_call(50)
    none = Guard("none", window=200_000)
    none.before_call(history)
    assert none.refused() is None


def test_a_failing_summariser_is_a_mechanical_summary_and_no_error():
    def fail(prompt: Prompt) -> str:
        raise ConnectionError("the key is sk-secret")

    guard = Guard("contextguard", window=2_000, summarizer=AskedModel(fail))
    sent = guard.before_call(turn(0, 8_000))
    assert sent[0]["content"].startswith("[Previous conversation summary]")
    assert guard.compactions[0].passes[0].failed


def test_an_asynchronous_summariser_is_awaited_in_the_loop_of_the_agent():
    loops = []

    async def summarise(prompt: Prompt) -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "awaited"

    async def agent() -> list[dict]:
        guard = Guard("contextguard", window=2_000, summarizer=AskedModel(summarise))
        sent = await guard.before_call_async(turn(0, 8_000))
        assert loops == [asyncio.get_running_loop()]
        return sent

    assert "awaited" in asyncio.run(agent())[0]["content"]
    guard = Guard("contextguard", window=2_000, summarizer=AskedModel(summarise))
    assert "awaited" in guard.before_call(turn(0, 8_000))[0]["content"], "also without a loop"


def test_a_guard_goes_on_from_what_was_stored():
    words = iter(("first", "second"))
    one = Guard("contextguard", window=2_000, summarizer=AskedModel(lambda prompt: next(words)))
    history = [SYSTEM, *turn(0, 8_000)]
    one.before_call(history)
    one.after_call(700)
    stored = one.dump()
    other = Guard("contextguard", window=2_000, summarizer=AskedModel(lambda prompt: "other"))
    other.load(stored, history)
    history += turn(1, 10)
    assert other.before_call(history) == one.before_call(history)
    with pytest.raises(GuardError, match="not those"):
        Guard("contextguard", window=2_000).load(stored, turn(5))
    for damaged in (b"{}", b'{"log":"\xff"}', b'{"log":' + b"[" * 200_000):
        with pytest.raises(GuardError, match="not a stored guard"):
            Guard("contextguard", window=2_000).load(damaged, history)
    with pytest.raises(GuardError, match="the bytes that dump"):
        Guard("contextguard", window=2_000).load({}, history)
    with pytest.raises(GuardError, match="by the policy contextguard"):
        Guard("codex", window=2_000).load(stored, history)


def test_a_guard_whose_requests_have_many_edits_can_be_stored():
    guard = Guard("agent-framework-tool-result", window=2_000)
    history: list[dict] = []
    for number in range(70):
        history += turn(number, 60)
    guard.before_call(history)
    guard.after_call(100)
    again = Guard("agent-framework-tool-result", window=2_000)
    again.load(guard.dump(), history)
    assert again.dump() == guard.dump()


def test_what_is_misused_is_refused_in_a_sentence():
    guard = Guard("contextguard", window=200_000)
    guard.before_call(turn(0))
    with pytest.raises(GuardError, match=r"no answer yet: call after_call\(\) or withdraw\(\)"):
        guard.before_call(turn(0))
    for count in (-5, 5.5, "5", True):
        with pytest.raises(GuardError, match="whole numbers"):
            guard.after_call(count)
    with pytest.raises(GuardError, match="no answer yet"):
        guard.take(turn(0))
    guard.withdraw()
    with pytest.raises(GuardError, match="message 1 is not the one"):
        guard.before_call(turn(1))
    for late in (lambda: guard.after_call(5), guard.withdraw, guard.refused):
        with pytest.raises(GuardError, match=r"no request waits for an answer: call before_call\(\) first"):
            late()
    with pytest.raises(SettingError, match="openai or anthropic"):
        Guard("contextguard", window=1, dialect="latin")
    with pytest.raises(GuardError, match="role"):
        Guard("contextguard", window=1).before_call([{"role": "wizard", "content": "x"}])
    with pytest.raises(GuardError, match="not a JSON"):
        Guard("contextguard", window=1).before_call([{"role": "user", "content": object()}])


@pytest.mark.parametrize("window", [0, -5, True, 2**53 + 1, 1.5, "x", None])
def test_a_window_that_is_none_is_refused_at_once(window):
    with pytest.raises(SettingError, match="window is a whole number of tokens from 1 to"):
        Guard("contextguard", window=window)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("x", "a list of objects such as dicts, not of the type str"),
        (None, "not of the type NoneType"),
        ({"role": "user", "content": "x"}, "not of the type dict"),
        ([{"role": "user", "content": "x"}, 1], "message 2 is an object such as a dict, not of the type int"),
    ],
)
def test_a_history_of_something_else_is_refused_in_words(dialect, messages, words):
    guard = Guard("none", window=1, dialect=dialect)
    stored = guard.dump()
    with pytest.raises(GuardError, match=words):
        guard.before_call(messages)
    with pytest.raises(GuardError, match=words):
        guard.load(stored, messages)
    assert not guard.session.events


def test_marks_of_caching_may_move():
    guard = Guard("contextguard", window=200_000, dialect="anthropic")
    history = blocks(0)
    history[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    guard.before_call(history)
    guard.after_call(10)
    later = copy.deepcopy(history)
    del later[0]["content"][0]["cache_control"]
    assert guard.before_call([*later, *blocks(1)])[0] == later[0]


def test_system_prompt_and_tools_cost_tokens():
    tools = [{"type": "function", "function": {"name": "read", "description": "d" * 400, "parameters": {}}}]
    alone = Guard("contextguard", window=200_000)
    alone.before_call(turn(0))
    beside = Guard("contextguard", window=200_000)
    beside.before_call(turn(0), system="s" * 400, tools=tools)
    plain, more = (guard.asked.decision.evidence["heuristic_sent"] for guard in (alone, beside))
    assert more - plain >= 200


@pytest.mark.parametrize("summary", ["", " \n"])
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_of_an_empty_summary_no_message_is_sent(dialect, summary):
    """As their originals do, some policies put it before the history all the same; APIs refuse such a message."""
    guard = Guard("kimi-cli", window=100_000, dialect=dialect, summarizer=AskedModel(lambda prompt: summary))
    history, build = [], turn if dialect == "openai" else blocks
    for number in range(3):
        drive(guard, history, build(number), 10_000)
    drive(guard, history, build(3), 99_000)
    sent = guard.before_call(history + build(4))
    assert guard.compactions
    assert 0 < len(sent) < len(history)
    assert all(str(message["content"] or message.get("tool_calls") or "").strip() for message in sent)
    assert sent[-1] == build(4)[-1]


def test_a_request_that_would_begin_with_an_answer_begins_with_the_user_where_the_api_asks_for_that():
    begins = {}
    for dialect, turn_of in (("openai", turn), ("anthropic", blocks)):
        guard = Guard("autogen-buffered", window=200_000, dialect=dialect, buffer_size=1)
        history: list[dict] = []
        begins[dialect] = [drive(guard, history, turn_of(number))[0] for number in range(2)]
    assert [message["role"] for message in begins["openai"]] == ["assistant"] * 2
    assert begins["anthropic"] == [{"role": "user", "content": "[Earlier messages were left out.]"}] * 2


def test_an_agent_whose_own_history_begins_with_an_answer_sends_that():
    history = [{"role": "assistant", "content": [{"type": "text", "text": "What shall I do?"}]}, *blocks(1)]
    assert Guard("none", window=200_000, dialect="anthropic").before_call(history) == history


@pytest.mark.parametrize(("dialect", "turn_of"), [("openai", turn), ("anthropic", blocks)])
def test_half_a_character_breaks_no_agent_and_is_sent_as_it_was_where_nothing_changed(dialect, turn_of):
    guard = Guard("claude-code", window=200_000, dialect=dialect, summarizer=AskedModel(lambda _: "so far \udc00"))
    history: list[dict] = []
    half = {"role": "user", "content": "cut in an emoji \ud83d"}
    drive(guard, history, [half], system="\ud83d", tools=[{"name": "read", "description": "\ud83d"}])
    sent = drive(guard, history, turn_of(1))
    assert sent[0] is half
    stored = guard.dump()
    again = Guard("claude-code", window=200_000, dialect=dialect)
    again.load(stored, history)
    assert guard.session.events[0].parts[0].text == "cut in an emoji \N{REPLACEMENT CHARACTER}"
    assert again.before_call(history)[0] is half


class Block(BaseModel):
    """As the libraries of OpenAI and Anthropic make them: what is not set is not sent."""

    type: str
    text: str
    citations: list[str] | None = None


class Answer(BaseModel):
    role: str
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[dict] | None = None


def test_what_the_libraries_answer_with_can_be_put_into_the_history_as_it_is():
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    objects = [Answer(role="assistant", tool_calls=[call]), Answer(role="assistant", content="done")]
    guard = Guard("langchain-clear-tool-uses", window=200_000, trigger=10, keep=0, clear_tool_inputs=True)
    history: list = [SYSTEM, {"role": "user", "content": "Read it."}, objects[0]]
    history.append({"role": "tool", "tool_call_id": "c1", "content": "r" * 400})
    assert guard.before_call(history)[3]["content"] != "r" * 400
    guard.after_call(300)
    again = Guard("none", window=200_000)
    sent = drive(again, history, [objects[1], {"role": "user", "content": "Thanks."}])
    assert all(one is other for one, other in zip(sent, history, strict=True))
    assert [len(event.parts) for event in again.session.events] == [1, 1, 1, 1, 1]


def test_blocks_of_a_library_are_written_again_where_a_policy_changes_their_message():
    block = Block(type="text", text="I look into it.")
    call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "p" * 400}}
    guard = Guard(
        "langchain-clear-tool-uses", window=200_000, dialect="anthropic", trigger=10, keep=0, clear_tool_inputs=True
    )
    history = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [block, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r" * 400}]},
    ]
    sent = guard.before_call(history)
    assert sent[1]["content"] == [{"type": "text", "text": "I look into it."}, {**call, "input": {}}]


def test_half_a_character_in_a_summary_or_beside_the_words_is_mended():
    guard = Guard("contextguard", window=1_000, summarizer=AskedModel(lambda _: "so far \udc00"))
    history: list[dict] = []
    for number in range(4):
        sent = drive(guard, history, turn(number, 2_000), 900, todos=[Todo("mend \udc00", "pending")])
    assert "so far \N{REPLACEMENT CHARACTER}" in str(sent)
    assert guard.dump()
