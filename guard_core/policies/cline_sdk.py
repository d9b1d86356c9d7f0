"""The SDK of Cline: at 90 % of what the model takes, by its own estimate of the request or the last prompt of the run.

Source of the rules: @cline/core 0.0.86 of Cline CLI 3.0.65, createContextCompactionPrepareTurn with its default
strategy, by reading and by running. A summary by the model replaces what comes before the newest messages. Not
modelled: the summary by rule to which it falls back where the model fails, and after a refused request; the input of
the summariser cut to its budget; results that are shortened in requests; and ids and times of its messages, which its
estimate counts, too.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from guard_core.costs import CALL, MEDIA, MODEL, REASONING, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import ProviderCounts, UsageCounter
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.policies.pieces.looks import PolicyLooks
from guard_core.policies.pieces.message_columns import MessageColumns
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_limit
from guard_core.policies.settings import COUNT, KnownProblem, PolicyKind, RecordedRuns, Setting
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Span, Synthetic, View

CHARS_PER_TOKEN = 3  # CHARS_PER_TOKEN of @cline/shared, of JSON and rounded up
# compaction-shared.d.ts: the share of a window that is input, the share of that at which it compacts, how often its
# estimate may be counted, the share that is left, and the tokens that stay at the end.
OF_WINDOW, TRIGGER, MOST_SCALE, TARGET, PRESERVED = 0.9, 0.9, 4, 0.7, 20_000
SUMMARY_TOKENS = 8_192  # DEFAULT_SUMMARY_MAX_OUTPUT_TOKENS
# Characters before a summary, and behind it where neither files that were read nor changed ones are listed.
FRAME = len("Context summary:\n\n") + 40
# JSON around the messages of a request, around the parts of a message, and around each of them, with a comma behind.
REQUEST = len('{"systemPrompt":"","messages":[],"tools":[]}') - 1
ANSWER, SAID = len('{"role":"assistant","content":[]},') - 1, len('{"role":"user","content":[]},') - 1
PARTS = {
    TEXT: len('{"type":"text","text":},'),
    REASONING: len('{"type":"thinking","thinking":},'),
    CALL: len('{"type":"tool_use","id":"","name":"","input":},'),
    RESULT: len('{"type":"tool_result","tool_use_id":"","content":},'),
    MEDIA: len('{"type":"image","data":"","mediaType":"image/png"},'),
}
# A summary is in its message once more, as metadata beside other numbers; the line breaks of both have two characters.
METADATA = len(
    ',"metadata":{"kind":"compaction_summary","displayRole":"system","userRunSpan":1,"summary":"",'
    '"details":{"readFiles":[],"modifiedFiles":[]},"tokensBefore":10000,"generatedAt":1700000000000}'
)
BREAKS = 2 + 2 * 7
WRITTEN = SAID + PARTS[TEXT] - 1 + len('""') + METADATA + BREAKS - len("Context summary:\n\n")
_SOURCE = "@cline/core 0.0.86"


def message_chars(ledger: Ledger, form: str = "") -> Ints:
    """Characters of the JSON of each event, as JavaScript counts them, with the comma behind it."""
    parts = ledger.parts_in(form)
    kind, wide = parts["kind"], parts["utf16"] - parts["chars"]
    quoted = parts["json_chars"] + wide
    varies = {
        TEXT: quoted,
        REASONING: quoted,
        CALL: parts["utf16"] + parts["id_chars"] + parts["name_chars"],
        RESULT: quoted + parts["id_chars"],
        MEDIA: (parts["bytes"] + 2) // 3 * 4,
    }
    sizes = np.select([kind == each for each in varies], [PARTS[each] + varies[each] for each in varies], 0)
    return np.asarray(ledger.by_event(sizes) + np.where(ledger.events["flags"] & MODEL, ANSWER, SAID))


def message_tokens(ledger: Ledger, form: str = "") -> Ints:
    """The estimate of each event by itself."""
    return -(-(message_chars(ledger, form) - 1) // CHARS_PER_TOKEN)


def chars_prefix(ledger: Ledger, form: str = "") -> Ints:
    """Prefix sums of the characters over the log."""
    return ledger.prefix_by(f"cline-sdk characters/{form}", lambda ledger: message_chars(ledger, form))


def view_chars(ledger: Ledger, view: View) -> int:
    """Characters of the messages of a view."""
    total = 0
    for segment in view:
        if isinstance(segment, Span):
            prefix = chars_prefix(ledger, segment.form)
            total += prefix.item(segment.stop) - prefix.item(segment.start)
        elif isinstance(segment, Synthetic):
            total += WRITTEN + 2 * segment.bytes
    return total


TOKENS = TokenEstimate(
    "cline-sdk characters / 3",
    "ceil(characters of JSON / 3)",
    message_tokens,
    lambda size: -(-(WRITTEN - 1 + 2 * size) // CHARS_PER_TOKEN),
)


def fixed_chars(ledger: Ledger) -> int:
    """Characters of system prompt and tools. Where the recording lacks one of them, they are taken to be at least what
    makes its estimate of the first counted request equal to that count."""
    known = REQUEST + ledger.system_chars + ledger.tools_tokens * 4
    counted = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    if (ledger.system_recorded and ledger.tools_recorded) or not len(counted):
        return known
    prompt, at = (ledger.steps[name].item(counted[0]) for name in ("prompt_tokens", "at"))
    return max(known, prompt * CHARS_PER_TOKEN - chars_prefix(ledger).item(at))


class ClineSdkSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens; `max_input_tokens` and `max_output` are 0 where the model does not say."""

    max_input_tokens: int
    max_output: int
    preserved: int
    summary_budget: int

    def input_limit(self, window: int) -> float:
        """What the model takes."""
        return min(self.max_input_tokens, window) if self.max_input_tokens else OF_WINDOW * window


class ClineSdk(CountedPolicy):
    """The policy; see the module."""

    settings: ClineSdkSettings
    name = "cline-sdk"
    agent = "cline"

    @property
    def counter(self) -> UsageCounter:
        words = "what its estimate of the request has beyond it; in all at most four times that estimate"
        return UsageCounter(output=False, pending=message_tokens, pending_words=words)

    @property
    def uncounted(self) -> TokenEstimate | None:
        return TOKENS

    def threshold(self, window: int) -> int:
        return math.ceil(TRIGGER * self.settings.input_limit(window))

    def rule(self, window: int) -> str:
        if self.settings.max_input_tokens:
            return f"90 % of {min(self.settings.max_input_tokens, window):,}"
        return f"81 % of {window:,}"  # 90 % of 90 %

    def _numbers(
        self, ledger: Ledger, looks: PolicyLooks, counts: ProviderCounts, uncounted: Ints, head: Head | None = None
    ) -> dict[str, Ints]:
        """A run begins with each turn, and knows no count before its first answer."""
        own = ProviderCounts(np.where(looks.begins, 0, counts.tokens), np.where(looks.begins, -1, counts.as_of))
        columns = super()._numbers(ledger, looks, own, uncounted, head)
        known = own.as_of >= 0
        last = np.where(known, np.minimum(own.tokens, MOST_SCALE * uncounted), 0)
        decided = np.maximum(last, uncounted)
        return columns | {"pending": np.where(known, decided - own.tokens, 0), "decision_tokens": decided}

    def _left(self, history: CompactableHistory, scale: float, overhead: int) -> int:
        """Tokens that the messages may have after a compaction, beside those of system prompt and tools."""
        window = history.check.window
        limit = self.settings.input_limit(window) / scale
        trigger = TRIGGER * limit
        answers = np.flatnonzero(history.messages.is_model)
        few = 0 < self.settings.max_output < limit and len(answers) >= 5
        target = math.floor(limit / 2) if few else math.floor(TARGET * trigger)
        target = max(1, min(target, math.floor(limit), math.floor(trigger - 1)))
        return max(1, target - overhead)

    def _uncounted(self, ledger: Ledger, head: Head, at: Ints, state: Any) -> Ints:
        begins = fixed_chars(ledger) + view_chars(ledger, head.view)
        prefix = chars_prefix(ledger)
        return np.asarray(-(-(begins + np.maximum(prefix[at] - prefix[head.kept_from], 0)) // CHARS_PER_TOKEN))

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary, and the newest messages from an answer or a message of the user on."""
        messages, state = history.messages, history.state
        tokens = TOKENS.tokens(messages)
        whole = -(-(fixed_chars(history.ledger) + view_chars(history.ledger, history.view)) // CHARS_PER_TOKEN)
        begins = bool(history.ledger.steps["turn"][state.as_of] != history.ledger.steps["turn"][history.check.step])
        last = state.tokens if state.as_of >= 0 and not begins else 0
        scale = min(MOST_SCALE, max(1.0, last / max(whole, 1)))
        least = min(self.settings.preserved, self._left(history, scale, max(whole - int(tokens.sum()), 0)))
        cut = _cut(messages, tokens, least)
        written = np.flatnonzero(messages.is_written[:cut])
        if not 0 < cut < len(messages) or (len(written) and int(written[-1]) == cut - 1):
            return NOTHING_TO_COMPACT  # nothing to be summarised, or nothing new behind the last summary
        summary = SummaryMessage((Ask(messages.between(0, cut), self.settings.summary_budget),), frame=FRAME)
        kept = messages.between(cut, len(messages))
        return Plan((summary, *kept), cut=(messages.event_at(cut, history.stop),) * 3)


def _cut(messages: MessageColumns, tokens: Ints, least: int) -> int:
    """The first message that stays: the newest ones that have so many tokens, the last message of the user among them,
    from an answer or from a message of the user on."""
    behind = np.cumsum(tokens[::-1])
    cut = len(messages) - 1 - int(np.searchsorted(behind, least)) if behind[-1] >= least else 0
    asked = np.flatnonzero(messages.is_said & ~messages.has_results & ~messages.is_written)
    if len(asked) and asked[-1] > 0:
        cut = min(cut, int(asked[-1]))
    begins = messages.is_model.copy()
    begins[asked] = True
    while cut > 0 and not begins[cut]:
        cut -= 1
    return cut


KIND = PolicyKind(
    "cline-sdk",
    "Cline SDK",
    "Compacts at 90 % of the model's input limit; a summary replaces all but the newest messages.",
    lambda **values: ClineSdk(ClineSdkSettings(**values)),
    (
        Setting(
            "max_input_tokens",
            "Input limit",
            COUNT,
            0,
            "the model's input limit; 0: 90 % of the window",
            _SOURCE,
            unit="tokens",
            main=True,
            sweep=(0, 64_000, 128_000),
        ),
        Setting(
            "max_output",
            "Output limit",
            COUNT,
            0,
            "the model's output limit; if it is below the input limit, half of the input may stay after five exchanges "
            "(0: not known)",
            _SOURCE,
            unit="tokens",
        ),
        Setting(
            "preserved",
            "Kept at the end",
            COUNT,
            PRESERVED,
            "tokens of the newest messages that stay, by estimate",
            _SOURCE,
            unit="tokens",
        ),
        summary_limit(SUMMARY_TOKENS, _SOURCE),
    ),
    judged_by=RecordedRuns("@cline/core", "agentic"),
    known_problems=(
        KnownProblem(
            "The last prompt is forgotten when a run begins",
            "Before the first answer of a run only its own estimate counts, with three characters per token.",
            "measured, @cline/core 0.0.86",
        ),
    ),
)
