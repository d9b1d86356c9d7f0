"""A guarded agent of ADK, watched while it works: a real runner, and a model that answers by a script."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # ADK's own


def test_the_decisions_of_a_guard_are_shown_while_its_agent_works(page, served, tmp_path, monkeypatch):
    from tests.guard_core.integrations import agents as adk  # loading ADK takes long: only where the test runs

    monkeypatch.chdir(tmp_path)
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "adk" in block)
    answers = ["Gladly.", adk.call(300_000), adk.call(300_000), "Read.", "Well."]
    llm = adk.Scripted(answers=answers, sent=[], asked=[], count=adk.by_size(1.6))
    names = {"agent": adk.LlmAgent(name="coder", model=llm, tools=[adk.read], instruction="Mend programs.")}
    exec(code.replace("http://127.0.0.1:8000", served.origin), names)  # what a reader would type
    agents = adk.Agents(llm, app=names["app"])
    with ThreadPoolExecutor(1) as thread:  # the browser has a loop of its own in this one

        def say(words):
            thread.submit(asyncio.run, agents.say(words)).result()

        page.goto("/running/")
        say("Help me with the log.")
        page.get_by_role("link", name="Help me with the log.").click()
        page.get_by_role("link", name="Steps 1").click()
        page.get_by_text("tokens remain to the threshold.").first.wait_for()
        say("Read it.")
        page.locator("[data-growth-words]", has_text="3 new steps.").wait_for()
        page.get_by_label("Follow").check()
        page.wait_for_url(re.compile(r"at=4"))
        page.get_by_text("ContextGuard compacted here: the count reached the threshold.").first.wait_for()
        card = page.locator("section").filter(has=page.get_by_role("heading", name="The decision")).first.inner_text()
        count, threshold, window, free = map(int, re.findall(r"\d{4,}", card.replace(",", ""))[:4])
        assert count >= threshold == window - free == 180_000
        thread.submit(asyncio.run, agents.runner.close()).result()
    assert not any((tmp_path / "spool").iterdir())
