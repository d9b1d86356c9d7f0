"""The loop of the README guards an agent as it stands there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent


def test_the_loop_of_the_readme_compacts_and_ends():
    section = (ROOT / "README.md").read_text().split("## Guard a live agent")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    sent: list[list[dict]] = []

    def complete(messages: list[dict]) -> dict:
        sent.append(messages)
        call = {"id": f"c{len(sent)}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        calls = {"tool_calls": [call]} if len(sent) < 6 else {}
        tokens = sum(len(str(message["content"] or "")) for message in messages) // 3
        return {"message": {"role": "assistant", "content": None, **calls}, "usage": {"prompt_tokens": tokens}}

    def run_tools(message: dict) -> list[dict]:
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": "r" * 200_000} for call in message["tool_calls"]
        ]

    given = {"task": "Mend it.", "complete": complete, "run_tools": run_tools, "ask": lambda system, user: "Mending."}
    exec(code, given)
    assert len(sent) == 6
    assert len(given["messages"]) == 12, "the agent keeps its whole history"
    summaries = [messages for messages in sent if "Mending." in str(messages[0]["content"])]
    assert summaries, "the guard compacted"
    assert len(summaries[-1]) < 12
