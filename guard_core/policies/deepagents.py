"""Deep Agents' summarization middleware: that of LangChain, which also recovers from requests that do not fit.

Source of the rules: deepagents 0.7.32, `middleware/summarization.py`, `_overflow_clip.py` and `_message_eviction.py`,
and scripted runs of it. The count has the system message and the tools in it. A request over 95 % of a known window
less the most tokens of an answer, and one that the provider refuses, is summarised and the tool results at its end are
moved to files, once; what does not fit then raises. Not here: pictures that are moved to files before a summary, and
the second try of a summariser that was given too much, with the middle of the history left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.defaults import BYTES_PER_TOKEN
from guard_core.errors import SettingError, SummaryFailed
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.deepagents_arguments import LONGEST, NOTE, first_kept, may_be_cut, with_short_arguments
from guard_core.policies.deepagents_files import without_large_results
from guard_core.policies.langchain import trimmed_to
from guard_core.policies.langchain.context_sizes import FRACTION, MESSAGES, ContextSize, size_of, written
from guard_core.policies.langchain.counting import ROLE_CHARS, approximate
from guard_core.policies.langchain.reported import ReportedMemory, reported_of, scaled
from guard_core.policies.langchain.settings import SUMMARIZATION_SETTINGS, LangChainSummarizationSettings
from guard_core.policies.langchain.summarization import SummarizationPolicy
from guard_core.policies.pieces.lists import ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    ListMessage,
    MessageCosts,
    messages_of,
    role_of,
    view_of,
)
from guard_core.policies.settings import (
    COUNT,
    SWITCH,
    TEXT,
    KnownProblem,
    PolicyKind,
    Profile,
    RecordedRuns,
    Setting,
    Value,
)
from guard_core.trace import NOTHING_TO_COMPACT, Head, Term, Trace
from guard_core.views import Segment, Synthetic, View, content_count

_SOURCE = "deepagents 0.7.32, create_summarization_middleware and SummarizationMiddleware"
FRAME_BYTES = 244  # around the summary, where the file of the history has a name of two characters (scripted runs)
LINES_BEHIND, LINES_BEFORE = (10,), (10, 1, 29, 1, 163, 1)  # of its lines behind and before the summary, from the end
NAME_BYTES = 38  # that name is longer: session_ and 32 digits (0.7.32)
INPUT_SHARE = 0.95  # of a known window that a request may fill (0.7.32)
STILL_LARGE = "the input still does not fit"


class DeepAgentsSettings(LangChainSummarizationSettings, frozen=True):
    """Of the middleware."""

    model_profile: bool = True
    max_output_tokens: int = 0
    tool_tokens: int = 0
    truncate_trigger: str = "fraction 0.85"
    truncate_keep: str = "fraction 0.1"
    truncate_length: int = LONGEST
    truncation_text: str = NOTE

    def __post_init__(self) -> None:
        super().__post_init__()
        size_of(self.truncate_keep, "truncate_keep")
        if self.truncate_trigger.strip():
            size_of(self.truncate_trigger, "truncate_trigger")


class DeepAgentsMemory(ReportedMemory, frozen=True):
    """And the last steps at which it summarised or tried to, with what it compared then and its list before, to which
    an error returns, and moved results to files."""

    asked_at: int = -1
    asked_tokens: int = -1
    asked_head: tuple[Segment, ...] = ()
    asked_from: int = 0
    clipped_at: int = -1


class ListedMessages(NamedTuple):
    """A list of messages with what is counted of each, and what the provider reported of each answer; and the `fixed`
    tokens of what a request has before it, of which so many are messages (`fixed_messages`)."""

    messages: Sequence[ListMessage]
    costs: Sequence[int]
    reported: Sequence[int]
    fixed: int
    fixed_messages: int

    def list_tokens(self) -> int:
        """Tokens of the list without the fixed part of a request."""
        return self._counted(0, 0)

    def request_tokens(self) -> int:
        """Those of a request with it."""
        return self._counted(self.fixed, self.fixed_messages)

    def _counted(self, fixed: int, before: int) -> int:
        total = sum(self.costs) + fixed
        last = max((place for place, tokens in enumerate(self.reported) if tokens), default=-1)
        if last < 0 or len(self.messages) + before < 2:
            return total
        up_to = sum(self.costs[: last + 1]) + fixed
        return int(scaled(np.int64(total), np.int64(self.reported[last]), np.int64(up_to)))


class DeepAgentsSummarization(SummarizationPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "deepagents-summarization"
    points: ClassVar[tuple[Point, ...]] = (Point.BEFORE_CALL, Point.ON_OVERFLOW)
    most_attempts: ClassVar[int] = 3
    state_type: ClassVar[type] = DeepAgentsMemory
    settings: DeepAgentsSettings

    def costs(self) -> MessageCosts:
        return _named(super().costs())

    def fixed_tokens(self, ledger: Ledger) -> int:
        tools = self.settings.tool_tokens or math.ceil(ledger.tools_tokens * BYTES_PER_TOKEN / self.chars_per_token)
        if not ledger.system_chars:
            return tools
        system = Synthetic("system", ledger.system_chars + ROLE_CHARS["system"] - ROLE_CHARS["user"])
        return super().costs().inserted(system) + tools

    def fixed_messages(self, ledger: Ledger) -> int:
        return int(ledger.system_chars > 0)

    def budget(self, window: int) -> int:
        """The tokens that a request may have, -1: that is not known."""
        if not self.settings.model_profile:
            return -1
        return max(int(window * INPUT_SHARE) - self.settings.max_output_tokens, 0)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        budget = self.budget(sizes.window)
        over = (counted > budget) & (budget >= 0)
        may_cut = self._cuts(counted, sizes.messages, sizes.window) & may_be_cut(sizes, self.settings.truncate_length)
        return np.asarray(super().acts(sizes, counted, limit) | over | may_cut)

    def compact(self, request: ListRequest, state: Any) -> ListOutcome | None:
        check, ledger = request.check, request.ledger
        refused = check.point is Point.ON_OVERFLOW
        if refused and state.clipped_at == check.step:
            return _raised(request, state)
        if refused and state.asked_at == check.step:
            return self._after_refusal(request, state)
        messages = request.messages
        before = self._shortened(request, self._listed(ledger, messages, state), state)
        sent = _unless(request.view, view_of(ledger, before.messages))
        if not refused and not self._due(before, ledger, check.window):
            return None if sent is None else ListOutcome(request.view, state, sent=sent, reason=self._why_cut(request))
        cut = self.cut_of(request, before.messages, before.costs, before.list_tokens())
        asked = {"asked_at": check.step, "asked_tokens": request.counted}
        listed = {"asked_head": state.head, "asked_from": state.kept_from}
        state = msgspec.structs.replace(state, **asked, **listed, sent=(), sent_from=0)
        if cut <= 0:
            whole = ListOutcome(request.view, state, sent=sent, reason=self._why_cut(request) if sent else "")
            return self._fitted(request, before, whole, refused=refused)
        try:
            written = self.written_for(request, before.messages[:cut], state)
        except SummaryFailed as error:
            return self.failed(request, state, view_of(ledger, before.messages[:cut]), error)
        summary = ListMessage(inserted=Synthetic("summary", FRAME_BYTES + written.bytes, written.text))
        after = view_of(ledger, [summary, *messages[cut:]])
        sent = view_of(ledger, [summary, *before.messages[cut:]])
        state = msgspec.structs.replace(written.state, summary_bytes=written.bytes)
        facts = {"summary_bytes": written.bytes, "empty": not written.bytes, "fallback": not written.given}
        record = request.passed(written.given, sent, **facts)
        summarised = ListOutcome(after, state, (record,), sent=_unless(after, sent))
        return self._fitted(request, before, summarised, refused=refused)

    def _after_refusal(self, request: ListRequest, state: Any) -> ListOutcome:
        """The outcome of a step that was refused after it was summarised, or after that was tried."""
        ledger, sent = request.ledger, None
        if state.sent:
            sent = Head(state.sent, state.sent_from).at(ledger, request.check.at)
        before = self._listed(ledger, messages_of(request.view if sent is None else sent), state)
        outcome = ListOutcome(request.view, state, counted=state.asked_tokens, sent=sent)
        return self._fitted(request, before, outcome, refused=True)

    def _cuts(self, tokens: Ints, messages: Ints, window: int) -> NDArray[np.bool_]:
        """Where the trigger of cutting arguments is met by lists of so many tokens and messages."""
        trigger, settings = self.truncate_trigger, self.settings
        if trigger is None or (trigger.kind == FRACTION and not settings.model_profile):
            return np.asarray(tokens < 0)
        return messages >= trigger.value if trigger.kind == MESSAGES else tokens >= trigger.tokens(window)

    @cached_property
    def truncate_trigger(self) -> ContextSize | None:
        """When arguments are cut, None: never."""
        text = self.settings.truncate_trigger.strip()
        return size_of(text, "truncate_trigger") if text else None

    def _shortened(self, request: ListRequest, listed: ListedMessages, state: Any) -> ListedMessages:
        """A list as it is sent: with the arguments of old calls cut where that is due."""
        ledger, settings, window = request.ledger, self.settings, request.check.window
        tokens, count = np.array([request.counted]), np.array([len(listed.messages)])
        if not self._cuts(tokens, count, window)[0]:
            return listed
        keep = size_of(settings.truncate_keep, "truncate_keep")
        stop = first_kept(listed.costs, keep, window if settings.model_profile else -1)
        if stop >= len(listed.messages):  # a last message over what is kept keeps all others whole, too (0.7.32)
            return listed
        messages = with_short_arguments(
            request, listed.messages, stop, settings.truncate_length, settings.truncation_text
        )
        return self._listed(ledger, messages, state)

    def _due(self, listed: ListedMessages, ledger: Ledger, window: int) -> bool:
        """Is a summary due, by the list as it would be sent."""
        tokens, budget = listed.request_tokens(), self.budget(window)
        answers = [place for place, message in enumerate(listed.messages) if role_of(ledger, message) == ASSISTANT]
        reported = listed.reported[answers[-1]] if answers else 0
        met = self.met(np.array([max(tokens, reported)]), np.array([len(listed.messages)]), window)
        return bool(met[0]) or 0 <= budget < tokens

    def _why_cut(self, request: ListRequest) -> str:
        """Why arguments were cut, as the record says it."""
        messages = content_count(request.view)
        return f"arguments: {request.counted:,} tokens, {messages:,} messages: {self.truncate_trigger}"

    def _fitted(
        self, request: ListRequest, before: ListedMessages, outcome: ListOutcome, *, refused: bool
    ) -> ListOutcome:
        """The outcome with the results at the end moved to files where the request was refused or is over its budget;
        an error where it is too large even then. `before` is the request that was refused, or would have been sent."""
        ledger, window = request.ledger, request.check.window
        state = outcome.state
        nothing = 0 if outcome.passes or outcome.sent is not None else NOTHING_TO_COMPACT
        sent = messages_of(outcome.view if outcome.sent is None else outcome.sent)
        budget = self.budget(window)
        if not refused and (budget < 0 or self._listed(ledger, sent, state).request_tokens() <= budget):
            return outcome._replace(held=nothing)
        messages = without_large_results(request, sent)
        count = self._listed(ledger, messages, state).request_tokens()
        if (refused and count >= before.request_tokens()) or (0 <= budget < count):
            return _raised(request, state)
        if messages == sent and not outcome.passes:
            return outcome._replace(held=nothing)
        state = msgspec.structs.replace(state, clipped_at=request.check.step)
        view = view_of(ledger, without_large_results(request, messages_of(outcome.view)))
        return outcome._replace(view=view, state=state, sent=_unless(view, view_of(ledger, messages)), reason="")

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        terms = super().explain(trace, step)
        record = next((record for record in trace.compactions if record.step == step), None)
        if record is None or not record.reason.startswith("arguments: "):
            return terms
        words = f"{self.settings.truncate_trigger}: it cuts long arguments of old calls"
        return (*terms[:-1], replace(terms[-1], expression=words))

    def last_lines(self, summary: Synthetic) -> list[int]:
        size = summary.bytes - FRAME_BYTES
        return list(accumulate((*LINES_BEHIND, size + 1, *LINES_BEFORE)))

    def _listed(self, ledger: Ledger, messages: Sequence[ListMessage], state: Any) -> ListedMessages:
        return ListedMessages(
            messages,
            self.costs().messages(ledger, messages),
            reported_of(ledger, messages, state),
            self.fixed_tokens(ledger),
            self.fixed_messages(ledger),
        )


def _named(plain: MessageCosts) -> MessageCosts:
    """Costs that count a summary with the whole name of its file."""
    return MessageCosts(f"deepagents {plain.key}", plain.events, lambda message: plain.inserted(_with_name(message)))


def _with_name(message: Synthetic) -> Synthetic:
    """An inserted message as it is counted: that of a summary with the whole name of its file."""
    return (
        message
        if message.kind != "summary"
        else msgspec.structs.replace(message, bytes=message.bytes + NAME_BYTES, text=None)
    )


def _unless(view: View, sent: View) -> View | None:
    """What is sent where that is not the list, as an outcome has it."""
    return None if sent == view else sent


def _raised(request: ListRequest, state: Any) -> ListOutcome:
    """The error of a request that is too large even now, of which nothing is kept."""
    before = msgspec.structs.replace(state, head=state.asked_head, kept_from=state.asked_from)
    return ListOutcome(request.view, before, error=STILL_LARGE)


def deepagents_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings."""
    given = {name: value for name, value in parameters.items() if name != "factory"}
    known = "window" in parameters
    if parameters.get("factory"):
        trim = trimmed_to(given.get("trim_tokens_to_summarize"))
        return {**given, "trim_tokens_to_summarize": trim, "profile": FACTORY if known else UNKNOWN}
    trim = trimmed_to(given.get("trim_tokens_to_summarize", TRIMMED))
    cutting = given.pop("truncate_args_settings", None) or {}
    if not isinstance(cutting, Mapping):
        raise SettingError(f"truncate_args_settings is a mapping, not {str(cutting)[:40]!r}")
    cuts = {f"truncate_{name}": written(cutting[name]) for name in ("trigger", "keep") if cutting.get(name)}
    if "max_length" in cutting:
        cuts["truncate_length"] = cutting["max_length"]
    if "truncation_text" in cutting:
        cuts["truncation_text"] = cutting["truncation_text"]
    sizes: dict[str, Any] = {"trigger": written(given.get("trigger"))}
    if "keep" in given:
        sizes["keep"] = written(given["keep"])
    return {**given, **sizes, **cuts, "trim_tokens_to_summarize": trim, "profile": CONSTRUCTOR, "model_profile": known}


FACTORY, UNKNOWN, CONSTRUCTOR = "factory", "window-not-known", "constructor"
TRIMMED = 4_000  # tokens for the summariser of the constructor (0.7.32)
_DEFAULTS: dict[str, tuple[Value, dict[str, Value]]] = {
    "trigger": ("fraction 0.85", {UNKNOWN: "tokens 170000", CONSTRUCTOR: "fraction 0.85"}),
    "keep": ("fraction 0.1", {UNKNOWN: "messages 6", CONSTRUCTOR: "messages 20"}),
    "trim_tokens_to_summarize": (0, {UNKNOWN: 0, CONSTRUCTOR: TRIMMED}),
}
SETTINGS = (
    *(
        msgspec.structs.replace(
            setting,
            **(
                {"default": _DEFAULTS[setting.name][0], "profiles": _DEFAULTS[setting.name][1], "source": _SOURCE}
                if setting.name in _DEFAULTS
                else {}
            ),
        )
        for setting in SUMMARIZATION_SETTINGS
    ),
    Setting(
        "model_profile",
        "Window known",
        SWITCH,
        True,
        "the library knows the model's window: requests above 95 % of it are not sent",
        _SOURCE,
        profiles={UNKNOWN: False},
    ),
    Setting(
        "max_output_tokens",
        "Most tokens of an answer",
        COUNT,
        0,
        "set for the model and taken off those 95 %; ChatAnthropic sets the most that the model can write (64,000 of "
        "Claude Sonnet 4.5, Opus 4.5 and Haiku 4.5); 0: not set",
        f"{_SOURCE}; langchain-anthropic 1.7.7",
        needs="model_profile",
        unit="tokens",
        sweep=(0, 64_000),
    ),
    Setting(
        "tool_tokens",
        "Tool definitions",
        COUNT,
        0,
        "tokens of the tool definitions, counted with each request (2,665 of its own eight); 0: estimated from the "
        "recorded ones",
        _SOURCE,
        unit="tokens",
    ),
    Setting(
        "truncate_trigger",
        "Arguments are cut at",
        TEXT,
        "fraction 0.85",
        "tokens 4000, messages 50 or fraction 0.8 of the window, from which long arguments of write_file and edit_file "
        "are cut in requests; empty: never",
        _SOURCE,
        profiles={UNKNOWN: "messages 20", CONSTRUCTOR: ""},
    ),
    Setting(
        "truncate_keep",
        "Arguments kept",
        TEXT,
        "fraction 0.1",
        "newest messages whose arguments are not cut: messages 20, tokens 4000 or fraction 0.1 of the window",
        _SOURCE,
        profiles={UNKNOWN: "messages 20", CONSTRUCTOR: "messages 20"},
        needs="truncate_trigger",
    ),
    Setting(
        "truncate_length",
        "Longest argument",
        COUNT,
        LONGEST,
        "arguments longer than this are cut",
        _SOURCE,
        needs="truncate_trigger",
        unit="characters",
    ),
    Setting(
        "truncation_text",
        "Note behind a cut argument",
        TEXT,
        NOTE,
        "follows the first 20 characters of a cut argument",
        _SOURCE,
        needs="truncate_trigger",
        verbatim=True,
    ),
)
KIND = PolicyKind(
    DeepAgentsSummarization.name,
    "Deep Agents (summarization)",
    "Replaces old messages with a summary, and moves large results to files if a request does not fit.",
    lambda profile, **values: DeepAgentsSummarization(DeepAgentsSettings(**values)),
    SETTINGS,
    profiles=(
        Profile(FACTORY, "create_summarization_middleware for a model with a known window"),
        Profile(UNKNOWN, "the same for a model with an unknown window"),
        Profile(CONSTRUCTOR, "SummarizationMiddleware without the factory; it has no trigger of its own"),
    ),
    judged_by=RecordedRuns(
        "deepagents",
        "summarization_middleware",
        settings_of=deepagents_settings,
        strips_summaries=True,
        judges_acted=False,  # the file counts summaries only, not results that are moved to files
        refused_by=lambda ledger, view: _named(approximate(4)).view(ledger, view),
    ),
    known_problems=(
        KnownProblem(
            "Long answers that are only possible bring summaries forward",
            (
                "The most tokens of an answer are taken off 95 % of the window. With 64,000 of a window of 200,000, "
                "as ChatAnthropic sets for Claude Sonnet 4.5, it summarises above 126,000 tokens, not from 170,000 on."
            ),
            "deepagents 0.7.32 and langchain-anthropic 1.7.7, run",
        ),
        KnownProblem(
            "A request that cannot be shrunk ends the run",
            (
                "A request above 95 % of the window raises an error if neither a summary nor moving its last "
                "results to files helps: large user messages, or results before the last ones."
            ),
            _SOURCE,
        ),
    ),
)
