"""gptme: above a share of the window it clears or trims results and long answers, or asks for a checkpoint.

Source of the rules: gptme, `tools/autocompact/`: profile `0.35` is version 0.35.1, run, profile `d27f98d3` an earlier
revision, by reading (specification of new policies, section 2). 0.35.1 looks after the results of each answer and at
the end of a turn, at the last prompt and its own count of what came since; the earlier one after turns, at a count of
the texts. It first estimates what trimming would save; where that is less than a tenth, a model writes a checkpoint.
For 0.35.1 that is nothing as long as the texts alone, without tools, are below its budget. The trim of an answer, which
picks sentences, is modelled by its length. 0.35.1 first replaces older results by a note with the file that has them.
Not here, for sizes do not show it: it leaves results that report an error, or name a path that a later message has. Nor
are pinned messages here, and the reduction that the earlier revision falls back to.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, HAS_REASONING, REASONING, RESULT, TEXT
from guard_core.errors import SummaryFailed
from guard_core.forms import CutToEnds, Removed, Replaced
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, ListMessage, MessageCosts, role_of, view_of
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED
from guard_core.views import Synthetic

CHARS_PER_TOKEN = 4  # ours; gptme asks a tokenizer
CURRENT, EARLIER = "0.35", "d27f98d3"
MAX_OUTPUT, HEADROOM, CAP, LEAST = 8_192, 1_000, 256_000, 1_000  # tokens; util/context_budget.py
TRIM_TARGET = 0.7  # of the limit, which 0.35 trims to; decision.py
CLOSE = 0.8  # of the window: the earlier revision estimates and trims results from here on; decision.py, engine.py
LEAST_SAVING = 0.1  # of the tokens; decision.py
RESULT_LEFT = 200  # tokens of a result that is trimmed; decision.py
WITHOUT_REASONING = Removed(what="reasoning").name
ANSWER_SHARE, REASONING_SHARE = 0.3, 0.3  # of an answer that its trim and its reasoning are taken for; decision.py
ANSWER_AGE, REASONING_AGE = 3, 5  # messages behind it; decision.py
LONG_ANSWER = 1_000  # tokens; decision.py
LEAST_CLEARED, CLEARED_AGE = 200, 3  # tokens of a result, and messages behind it; engine.py, scoring.py
CLEARED = "[an old result: the whole of it is in a file]".ljust(215, ".")  # as long as gptme's note with a usual path
_SOURCE = "gptme 0.35.1, tools/autocompact"


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of each event: texts, reasoning, results, names and arguments of calls."""
    kind = parts["kind"]
    text = np.where(np.isin(kind, (TEXT, RESULT, REASONING)), parts["chars"], 0)
    return ledger.by_event(np.where(kind == CALL, parts["name_chars"] + parts["chars"], text))


COSTS = MessageCosts("gptme characters", _chars, lambda message: message.bytes)


class GptmeSettings(msgspec.Struct, frozen=True):
    """Shares of the window, tokens and numbers of messages; `early_share` is 0 where only the limit counts,
    `budget_tokens` 0 where the share does."""

    profile: str
    budget_share: float
    budget_tokens: int
    early_share: float
    max_tool_result_tokens: int
    keep_head: int
    keep_recent_tokens: int
    summary_budget: int


class Gptme(ListPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "gptme"
    points: ClassVar[tuple[Point, ...]] = (Point.END_OF_TURN, Point.BEFORE_CALL)
    settings: GptmeSettings

    @property
    def is_current(self) -> bool:
        return self.settings.profile == CURRENT

    @property
    def relation(self) -> str:  # type: ignore[override]
        return ">=" if self.is_current else ">"

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        share, budget = int(self.settings.budget_share * window), self.settings.budget_tokens
        if not self.is_current:
            return share
        left = window - MAX_OUTPUT - HEADROOM
        return min(budget, max(left, LEAST)) if budget else max(min(share, left, CAP), LEAST)

    def counted(self, sizes: Sizes) -> Ints:
        texts = (sizes.whole + sizes.ledger.system_chars) // CHARS_PER_TOKEN
        if not self.is_current:
            return np.asarray(texts)
        return np.asarray(np.where(sizes.as_of >= 0, sizes.last + sizes.new // CHARS_PER_TOKEN, texts))

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        """Within a turn, after the results of an answer; the earlier revision never."""
        if not self.is_current:
            return np.asarray(counted < 0)
        turns, rows = np.append(sizes.ledger.steps["turn"], -1), np.asarray(sizes.rows)
        is_within = (rows > 0) & (turns[rows] == turns[rows - 1])
        return np.asarray(self.over(counted, limit) & is_within)

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        """Over the limit; and, in the earlier revision, from a lower share on where a result is large."""
        counted, share = self.counted(sizes), self.settings.early_share
        over = self.over(counted, self.limit(sizes.window))
        if not share:
            return over
        large = self._large()
        prefix, head = large.prefix(sizes.ledger), sizes.head
        count = large.view(sizes.ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from]
        return np.asarray(over | ((counted >= int(share * sizes.window)) & (count > 0)))

    @property
    def acts_below(self) -> str:
        return f"a result is large, and at least {self.settings.early_share * 100:.3g} % of the window is filled"

    def _large(self) -> MessageCosts:
        """How many large results each event has."""
        most = self.settings.max_tool_result_tokens * CHARS_PER_TOKEN + CHARS_PER_TOKEN - 1

        def events(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
            return ledger.by_event(((parts["kind"] == RESULT) & (parts["chars"] > most)).astype(np.int64))

        return MessageCosts(f"gptme results over {most}", events, lambda message: 0)

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        messages = request.messages
        tokens = self._tokens(request, messages)
        if self.is_current and sum(tokens) + request.ledger.system_chars // CHARS_PER_TOKEN < request.limit:
            return self._checkpoint(request, state, messages, tokens)
        cleared = self._cleared(request, messages) if self.is_current else messages
        left = self._tokens(request, cleared)
        is_enough = self.is_current and sum(left) < request.limit
        saved = sum(tokens) - sum(left)
        if not is_enough:
            saved += sum(self._saving(request, message, place, left) for place, message in enumerate(cleared))
        if saved < LEAST_SAVING * (sum(tokens) if self.is_current else request.counted):
            return self._checkpoint(request, state, messages, tokens)
        trimmed = cleared if is_enough else self._trimmed(request, cleared, left)
        after = view_of(request.ledger, trimmed)
        if after == view_of(request.ledger, messages):
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        return ListOutcome(after, state, reason=f"{self.reason(request)}: results and answers are trimmed")

    def _tokens(self, request: ListRequest, messages: list[ListMessage]) -> list[int]:
        """What gptme's count of each message is taken for."""
        return [size // CHARS_PER_TOKEN for size in COSTS.messages(request.ledger, messages)]

    def _cleared(self, request: ListRequest, messages: list[ListMessage]) -> list[ListMessage]:
        """The list with a note in the place of each older result."""
        ledger, form = request.ledger, Replaced(text=CLEARED, over=LEAST_CLEARED * CHARS_PER_TOKEN - 1).name
        cleared = list(messages)
        for place in range(self._protected(ledger), len(messages) - CLEARED_AGE):
            if messages[place].event >= 0 and role_of(ledger, messages[place]) == TOOL:
                cleared[place] = messages[place].joined(form)
        return cleared

    def _protected(self, ledger: Ledger) -> int:
        """How many of the log's messages always stay: a system prompt that the log does not hold is one of them."""
        return max(self.settings.keep_head - int(ledger.system_chars > 0), 0)

    def _trims_results(self, request: ListRequest) -> bool:
        """Does it trim results and answers at this count at all."""
        over = self.is_over(request.counted, request.limit)
        return over or (not self.is_current and request.counted >= int(CLOSE * request.check.window))

    def _saving(self, request: ListRequest, message: ListMessage, place: int, tokens: list[int]) -> int:
        """What trimming a message is taken to save, in tokens."""
        ledger, size, behind = request.ledger, tokens[place], len(tokens) - place - 1
        if message.event < 0 or place < self._protected(ledger):
            return 0
        saved = 0
        if self._loses_reasoning(ledger, message, behind):
            saved += int(size * REASONING_SHARE)
        if self._trims_results(request):
            if self._large().message(ledger, message):
                saved += size - RESULT_LEFT
            elif self._is_long_answer(ledger, message, size, behind):
                saved += int(size * ANSWER_SHARE)
        return saved

    def _loses_reasoning(self, ledger: Ledger, message: ListMessage, behind: int) -> bool:
        reasons = bool(ledger.events["flags"][message.event] & HAS_REASONING) and not message.is_in(WITHOUT_REASONING)
        return not self.is_current and behind >= REASONING_AGE and reasons

    def _is_long_answer(self, ledger: Ledger, message: ListMessage, size: int, behind: int) -> bool:
        """An answer that it expects to trim. The current version leaves one with reasoning, which is signed; one that
        calls tools it leaves as well, but only when it trims."""
        signed = self.is_current and bool(ledger.events["flags"][message.event] & HAS_REASONING)
        return behind >= ANSWER_AGE and role_of(ledger, message) == ASSISTANT and size > LONG_ANSWER and not signed

    def _trimmed(self, request: ListRequest, messages: list[ListMessage], tokens: list[int]) -> list[ListMessage]:
        """The list with old reasoning removed, its largest results cut until the target is met, long answers cut."""
        ledger, settings, count = request.ledger, self.settings, len(messages)
        trimmed = list(messages)
        own = [place for place in range(self._protected(ledger), count) if messages[place].event >= 0]
        for place in own:
            if self._loses_reasoning(ledger, messages[place], count - place - 1):
                trimmed[place] = trimmed[place].joined(WITHOUT_REASONING)
        target = int(TRIM_TARGET * request.limit) if self.is_current else int(CLOSE * request.check.window)
        left = sum(COSTS.messages(ledger, trimmed)) // CHARS_PER_TOKEN
        large = [place for place in own if self._large().message(ledger, messages[place])]
        half = RESULT_LEFT * CHARS_PER_TOKEN // 2
        cut = CutToEnds(head=half, tail=half, over=settings.max_tool_result_tokens * CHARS_PER_TOKEN).name
        for place in sorted(large, key=lambda place: -tokens[place]):
            if left <= target:
                break
            trimmed[place] = trimmed[place].joined(cut)
            left -= tokens[place] - COSTS.message(ledger, trimmed[place]) // CHARS_PER_TOKEN
        for place in own if self._trims_results(request) else ():
            calls = self.is_current and bool(ledger.events["flags"][messages[place].event] & HAS_CALL)
            if self._is_long_answer(ledger, messages[place], tokens[place], count - place - 1) and not calls:
                chars = int(tokens[place] * CHARS_PER_TOKEN * (1 - ANSWER_SHARE))
                trimmed[place] = trimmed[place].joined(CutToEnds(what="text", head=chars).name)
        return trimmed

    def _checkpoint(
        self, request: ListRequest, state: ListMemory, messages: list[ListMessage], tokens: list[int]
    ) -> ListOutcome:
        """The first messages, a checkpoint, and the newest within their budget. 0.35.1 asks for it within the
        conversation, of all messages, and writes one although the newest are all that there is."""
        ledger, first = request.ledger, min(self._protected(request.ledger), len(messages))
        while first < len(messages) and role_of(ledger, messages[first]) == TOOL:
            first += 1  # ours: the results of a call that stays do so, too
        sums = np.cumsum(tokens[first:][::-1])
        cut = len(messages) - int(np.searchsorted(sums, self.settings.keep_recent_tokens, side="right"))
        while cut < len(messages) and role_of(ledger, messages[cut]) == TOOL:
            cut += 1
        earlier = messages[first:] if self.is_current else messages[first:cut]
        if all(message.inserted is not None for message in earlier) or (cut <= first and not self.is_current):
            return ListOutcome(request.view, state, held=NOTHING_TO_COMPACT)
        given = request.view if self.is_current else view_of(ledger, messages[first:cut])
        try:
            summary, asked = request.summarise(state, given, self.settings.summary_budget)
        except SummaryFailed:
            failed = msgspec.structs.replace(state, calls=state.calls + 1)
            return ListOutcome(request.view, failed, held=SUMMARISER_FAILED)
        checkpoint = ListMessage(inserted=Synthetic("checkpoint", summary.bytes, summary.text))
        newest = [message for message in messages[max(cut, first) :] if not self.is_current or message.inserted is None]
        after = view_of(ledger, [*messages[:first], checkpoint, *newest])
        asked = msgspec.structs.replace(asked, summary_bytes=summary.bytes)
        return ListOutcome(after, asked, (request.passed(given, after, summary_bytes=summary.bytes),))


KIND = PolicyKind(
    Gptme.name,
    "gptme",
    "From a share of the window on, clears old results, trims long answers or writes a checkpoint.",
    lambda **values: Gptme(GptmeSettings(**values)),
    (
        Setting(
            "budget_share",
            "Share of the window",
            SHARE,
            0.9,
            "acts from this share of the window on (0.35: at most 256,000 tokens, and 9,192 below the window)",
            f"{_SOURCE}, util/context_budget.py",
            main=True,
            sweep=(0.9, 0.7, 0.5),
        ),
        Setting(
            "budget_tokens",
            "Budget",
            COUNT,
            0,
            "acts from this count on, at most 9,192 tokens below the window; 0: the share counts",
            f"{_SOURCE}, util/context_budget.py: context_budget",
            unit="tokens",
            not_in=(EARLIER,),
        ),
        Setting(
            "early_share",
            "Share with a large result",
            SHARE,
            0.0,
            "acts from this share on if a result is large; 0: never",
            "specification of new policies section 2",
            profiles={EARLIER: 0.5},
        ),
        Setting(
            "max_tool_result_tokens",
            "Large result",
            COUNT,
            2_000,
            "results with more tokens than this are large",
            _SOURCE,
            unit="tokens",
            main=True,
        ),
        Setting(
            "keep_head",
            "First messages",
            COUNT,
            2,
            "how many messages at the beginning always stay",
            "specification of new policies section 2",
            unit="messages",
            most=1_000_000,
        ),
        Setting(
            "keep_recent_tokens",
            "Keep recent",
            COUNT,
            20_000,
            "budget for the newest messages, which stay after a checkpoint",
            f"{_SOURCE}/resume.py",
            unit="tokens",
        ),
        summary_budget(),
    ),
    (
        Profile(CURRENT, "0.35.1: one budget, within turns, too; clears old results, or trims to 70 % of it"),
        Profile(EARLIER, "an earlier revision: acts from half of the window on if a result is large"),
    ),
    known_problems=(
        KnownProblem(
            "A checkpoint that removes nothing",
            (
                "Where the newest messages within their budget are all that there is, 0.35.1 adds the checkpoint to "
                "them. The count stays above the limit, so that it asks for another one after each answer."
            ),
            "gptme 0.35.1, run with results that the provider counts ten times as high as gptme",
        ),
        KnownProblem(
            "Large results lead to a checkpoint",
            (
                "The earlier revision considers what trimming would save only from 80 % of the window on. "
                "Between half of the window and that, it asks a model although trimming would be enough."
            ),
            "specification of new policies section 2",
        ),
    ),
)
