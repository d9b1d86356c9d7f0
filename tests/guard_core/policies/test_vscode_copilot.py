"""VS Code Copilot: the summary of one request is used at the next."""

import pytest

from guard_core.policies import get_policy
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run


def test_the_threshold_is_three_quarters_of_the_budget():
    assert get_policy("vscode-copilot").threshold(200_000) == 127_500
    assert get_policy("vscode-copilot", tools=20_000).threshold(200_000) == 114_750


@pytest.mark.parametrize(("prompt", "fires"), [(127_499, False), (127_500, True)])
def test_what_the_request_held_is_summarised_and_what_came_since_stays(prompt, fires):
    log = session(
        user("go"),
        tool_call("read", "a"),
        tool_result("y" * 40, "read", "a"),
        tool_call("read", "b"),
        tool_result("y" * 40, "read", "b"),
        calls=(ModelCall(1, 1, 1_000), ModelCall(3, 3, prompt, output_tokens=900), ModelCall(5, None, 500)),
    )
    trace = run(get_policy("vscode-copilot"), log, window=200_000)
    assert [record.step for record in trace.compactions] == ([2] if fires else [])
    if fires:
        assert trace.compactions[0].passes[0].summariser_view == (Span(0, 3),)
        assert trace.compactions[0].after[1:] == (Span(3, 5),)
