"""A session retold in plain lists: what was sent at every step, what it cost, and where the compactions are."""

from __future__ import annotations

import html
import re
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from guard_core.checker.plain_words import typed
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.usage import Usage, usage_for
from guard_core.events import Event, MediaPart, ToolResultPart, part_text
from guard_core.facts.continuing import asks_only_to_continue
from guard_core.findings.claims import Finding
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.requests import materialise
from guard_core.sessions import (
    GUARDS_WINDOW,
    RECORDERS_WINDOW,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Session,
    Sourced,
)
from guard_core.tokens.heuristic import event_costs, parts_costs, tool_definition_tokens
from guard_core.trace import CompactionRecord, Trace
from guard_core.views import JOINED, Rewritten, Span, View
from guard_core.windows.agent_windows import taken_by_agent
from guard_core.windows.models import context_window, documented_windows
from guard_core.windows.window_evidence import Status, WindowJudgement

_DENIALS = frozenset("not never avoid don't dont mustn't mustnt shouldn't shouldnt".split())  # noqa: SIM905
MANUAL_WORDS = ("manual", "user")


_TYPOGRAPHY = (
    (re.compile("\u2026"), "..."),
    (re.compile("[\"'`\u00b4\u2018-\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb]+"), "'"),
    (re.compile("[-\u2010-\u2015\u2212]+"), "-"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(?<!\S)-(?!\S) ?"), ""),  # a dash by itself puts lines on one line, or begins an item of a list
)
# What was written around repeated words, taken off in this order: quoted lines, code, stars, underscores.
_WRITTEN_AROUND = (
    (re.compile(r"(?m)^[ \t]*>[> \t]*"), ""),
    (re.compile("`"), ""),
    (re.compile(r"(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])"), ""),
    (re.compile(r"(?<!\w)_([^\W\d_]+)_(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)(__?)(?![\s_])([^_\n]{0,300}\s[^_\n]{0,300})(?<!\s)\1(?!\w)"), r"\2"),
)
# What Cline puts around what was typed, and Claude Code around the arguments of a command.
_TAGGED = re.compile(r"<(task|user_message|feedback)>\s*(.*?)\s*(?:</\1>|$)", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*\S", re.DOTALL)
_ESCAPED = re.compile(r"""\\(u[0-9a-fA-F]{4}|[nrt"'`\\/*_#>.!+-])""")


class Wrong(Exception):
    """A claim does not hold."""


class CheckedCompaction(NamedTuple):
    """A compaction that counts: its place among all recorded ones, the first call after it (-1: none), who asked."""

    place: int
    step: int
    is_manual: bool


class Story:
    """A recording. All tokens are prompt tokens; steps, messages and compactions count from 0."""

    trace: Trace | None = None

    def __init__(self, session: Session, window: WindowJudgement) -> None:
        self.session = session
        self.judgement = window
        self.window = window.value
        self.ledger: Ledger = Ledger.of(session)
        self.attribution: Attribution = attribute(self.ledger)
        self.usage: Usage = usage_for(self.ledger, self.attribution)
        # By identity, for requests share messages; each beside its value, so that no other message takes its id.
        self._costs: dict[int, tuple[int, Event]] = {}
        self._texts: dict[int, tuple[set[str], Event]] = {}

    @cached_property
    def by_model(self) -> dict[str, int]:
        """The windows of models that answered beside the main one, where the table gives them another; 0: unknown."""
        names = [call.model for call in self.session.calls if call.model]
        if not names:
            return {}
        most = max(map(names.count, set(names)))
        main = next(name for name in dict.fromkeys([self.session.model, *names]) if names.count(name) == most)
        expected, windows = self._row(main), {}
        stated = self.session.window
        said = 0 if stated is None or stated.source is Provenance.ASSUMED else stated.value
        for name in set(names) - {main}:
            row = self._row(name)
            worst = max(call.prompt_tokens or 0 for call in self.session.calls if call.model == name)
            if row is None and expected and worst > max(expected.value, said):
                windows[name] = -1
            if row is None or row.source is Provenance.ASSUMED or (expected and row.value == expected.value):
                continue
            larger = documented_windows(name, worst) if worst > row.value else [row.value]
            windows[name] = larger[0] if len(larger) == 1 else -1  # not known
        return windows

    def _row(self, model: str) -> Sourced | None:
        """The window of a model by the table, or by its agent where that takes one for any of its models."""
        row = context_window(model)
        if row is not None and self.session.agent_format == "qwen-code":
            worst = max((call.prompt_tokens or 0 for call in self.session.calls if call.model == model), default=0)
            return taken_by_agent("qwen-code", model, row, worst, self.session.version)  # a table of its versions
        if row is not None and self.session.agent_format == "copilot-cli":
            worst = max((call.prompt_tokens or 0 for call in self.session.calls if call.model == model), default=0)
            served = context_window(f"github-copilot/{model}")
            return row if served is None or worst > served.value else served
        if row is not None and self.session.agent_format == "gemini-cli":
            return row if row.value == 1_048_576 else Sourced(1_048_576, Provenance.ASSUMED)
        if row is None or self.session.agent_format != "claude-code" or model.endswith("[1m]"):
            return row
        worst = max(call.prompt_tokens or 0 for call in self.session.calls if call.model == model)
        if worst > 200_000:
            return Sourced(1_000_000, Provenance.PROMPTS)
        usual = taken_by_agent("claude-code", model, row, worst, self.session.version).value  # a list of its models
        return row if row.value == usual else Sourced(usual, Provenance.ASSUMED)

    @cached_property
    def windows(self) -> list[int]:
        """What every request is held against: its model's window, 0 where the recording contradicts it."""
        asked_for = self.trace is not None and self.window != self.judgement.value
        if self.trace is not None and self.judgement.source is Provenance.USER:
            asked_for |= self.judgement.origin not in (GUARDS_WINDOW, RECORDERS_WINDOW)  # a person's wish
        own = 0 if self.judgement.status is Status.CONTRADICTED and not asked_for else self.window
        if self.in_characters[0]:
            return [0] * len(self.session.calls)
        if self.session.windows:
            main = self.session.window.value if self.session.window else 0
            return [own if stated == main else stated for stated in map(self.stated, self.session.calls)]
        return [max(0, self.by_model.get(call.model, own)) for call in self.session.calls]

    def stated(self, call: ModelCall) -> int:
        """The window that the file states for a call of one that states several."""
        *_, (_, window) = [self.session.windows[0], *(item for item in self.session.windows if item[0] <= call.at)]
        return window

    def has_other_window(self, step: int) -> bool:
        """Is a step's window, by the file or by the name of its model, another than the session's."""
        call = self.session.calls[step]
        if self.session.windows:
            return self.stated(call) != (self.session.window.value if self.session.window else 0)
        return bool(self.by_model.get(call.model))

    def is_over(self, step: int, tokens: int) -> bool:
        """Would a request of so many tokens be larger than the window at this step."""
        return 0 < self.windows[step] < tokens

    def filled(self, step: int, tokens: int) -> float:
        """The share of the window that a request of so many tokens fills at this step."""
        return tokens / self.windows[step] if self.windows[step] else 0.0

    @cached_property
    def counts(self) -> list[int | None]:
        """What the provider reported at every step."""
        return [call.prompt_tokens if (call.prompt_tokens or 0) > 0 else None for call in self.session.calls]

    @cached_property
    def in_characters(self) -> tuple[list[int], int]:
        """The steps whose count grew by a token for each byte of what was added, and of how many with much new text;
        none unless at least three and four fifths do."""
        same, compared, calls = [], 0, self.session.calls
        counted = [] if self.session.usage_ratio is not None else [at for at, count in enumerate(self.counts) if count]
        for before, after in pairwise(counted):
            if self.places[before] != self.places[after]:
                continue
            parts = [part for event in self.session.events[calls[before].at : calls[after].at] for part in event.parts]
            added = sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in parts)
            if added >= 400:
                compared += 1
                grown = (self.counts[after] or 0) - (self.counts[before] or 0)
                same += [after] if abs(grown - added) <= 0.05 * added else []
        return (same if len(same) >= max(3, 0.8 * compared) else []), compared

    @cached_property
    def average(self) -> int | None:
        """Tokens of a request on average, to the nearest whole number; None unless only the total is recorded."""
        total, calls = self.session.prompt_tokens_total, self.session.total_calls
        if not total or not calls or self.session.usage_ratio is not None or any(self.counts):
            return None
        whole, rest = divmod(total, calls)
        return whole + (2 * rest >= calls)

    @cached_property
    def places(self) -> list[int]:
        """The recorded compaction that each step's request is built on, -1: none."""
        return [
            max((place for place, item in enumerate(self.session.compactions) if item.at <= call.at), default=-1)
            for call in self.session.calls
        ]

    @cached_property
    def views(self) -> list[tuple[View, int]]:
        """The view that was sent at every step, and whose inserted messages it means."""
        return [self.view_on(place, call.at) for place, call in zip(self.places, self.session.calls, strict=True)]

    def view_on(self, place: int, at: int) -> tuple[View, int]:
        """The view of the first `at` events on top of a recorded compaction (-1: none)."""
        if place < 0:
            return (Span(0, at),), -1
        item = self.session.compactions[place]
        return (*item.base, Span(item.at, at)), place

    def price(self, step: int, view: View, place: int) -> int:
        """The provider's count of a request sent at a step: recorded if it is the one that was sent, else modelled."""
        estimate = self.estimate(view, place) if self.session.usage_ratio is not None else 0  # nothing else asks for it
        return max(0, self.usage.one(step, view, estimate, place).tokens)

    def estimate(self, view: View, place: int) -> int:
        """The heuristic tokens of a request, message by message."""
        tools = sum(tool_definition_tokens(tool) for tool in self.session.tools or ())
        fixed = sum(parts_costs(self.session.system or ())) + tools
        return fixed + sum(map(self.cost, materialise(view, self.session, place)))

    def cost(self, event: Event) -> int:
        """The heuristic tokens of one message, counted once."""
        if id(event) not in self._costs:
            self._costs[id(event)] = (sum(event_costs(event)), event)
        return self._costs[id(event)][0]

    @cached_property
    def sent(self) -> list[int]:
        """Prompt tokens at every step: recorded, or modelled where the provider reported nothing."""
        return [
            count if count is not None else self.price(step, *self.views[step])
            for step, count in enumerate(self.counts)
        ]

    @cached_property
    def compactions(self) -> list[CheckedCompaction]:
        """The recorded compactions that count: no edits or resumes, unless their recorder gives the tokens before."""
        real = [
            place
            for place, item in enumerate(self.session.compactions)
            if item.kind != "edit" or (item.tokens_before or 0) > 0
        ]
        latest = [max((place for place in real if place <= current), default=-1) for current in self.places]
        return [
            CheckedCompaction(
                place,
                latest.index(place) if place in latest else -1,
                self.session.compactions[place].trigger.lower() in MANUAL_WORDS,
            )
            for place in real
        ]

    def compaction(self, index: int) -> CheckedCompaction:
        if not 0 <= index < len(self.compactions):
            raise Wrong(f"there is no compaction {index}, but {len(self.compactions)}")
        return self.compactions[index]

    def first_call_after(self, index: int) -> int:
        """The first call after a compaction, whichever compactions came between; -1: none."""
        place = self.compaction(index).place
        return next((step for step, current in enumerate(self.places) if current >= place), -1)

    def removed_automatic(self) -> list[int]:
        """The automatic compactions that a call followed, or that one of these replaced before any call."""
        removed = []
        for index, item in enumerate(self.compactions):
            call = self.first_call_after(index)
            in_force = [other for other in self.compactions if other.step == call and call >= 0]
            if not item.is_manual and in_force and not in_force[0].is_manual:
                removed.append(index)
        return removed

    def recorded(self, index: int) -> RecordedCompaction:
        """The recorded compaction behind a counted one."""
        return self.session.compactions[self.compaction(index).place]

    def says(self, step: int, words: str) -> bool:
        """Does any message of the request that was sent at a step quote these words."""
        view, place = self.views[step]
        return any(self.quotes(event, words) for event in materialise(view, self.session, place))

    def quotes(self, event: Event, words: str) -> bool:
        """Does a message hold these words, however they are set; what a compaction inserted, not behind a negation."""
        if id(event) not in self._texts:
            self._texts[id(event)] = (heard("\n".join(map(part_text, event.parts))), event)
        texts = self._texts[id(event)][0]
        if id(event) in self._inserted:
            return any(_is_affirmed(text, one) for one in heard(words) for text in texts)
        return any(one in text for one in heard(words) for text in texts)

    @cached_property
    def _inserted(self) -> set[int]:
        """The messages, by identity, that recorded compactions inserted."""
        return {id(message) for item in self.session.compactions for message in own_texts(item)}

    def request_of(self, step: int) -> int:
        """The message that began the turn of a step, -1: none."""
        at = self.session.calls[step].at
        begins = [index for index, event in enumerate(self.session.events[:at]) if _begins_turn(event)]
        return begins[-1] if begins else -1

    @cached_property
    def _continued(self) -> dict[int, int]:
        """The messages of users that only ask to continue, each with the request that it continues."""
        continued, asked = {}, -1
        for index, event in enumerate(self.session.events):
            if not _begins_turn(event):
                continue
            text = next((one for one in typed(event) if one.strip()), "")
            is_command = text.lstrip().startswith(("<command-", "<bash-input>"))
            words = " ".join((_TAGGED.match(text.strip()) or [text, text, text])[2].split()).strip('"\\')
            pictures = any(isinstance(part, MediaPart) for part in event.parts)
            if is_command and not _ARGUMENTS.search(text):
                continue
            if pictures or not asks_only_to_continue(words):
                asked = index
            elif asked >= 0:
                continued[index] = asked
        return continued

    def task_of(self, step: int) -> int:
        """The message that a step works on: the one that began its turn, or the one that this asks to continue."""
        message = self.request_of(step)
        return self._continued.get(message, message)

    def log_grew(self, start: int, stop: int) -> int:
        """Prompt tokens of the events between the calls of two steps."""
        return self.between(self.session.calls[start].at, self.session.calls[stop].at)

    def between(self, first: int, last: int) -> int:
        """Prompt tokens of the events between two places in the log."""
        if (ratio := self.session.usage_ratio) is not None:
            whole = [sum(map(self.cost, self.session.events[:at])) for at in (first, last)]
            return int(whole[1] * ratio) - int(whole[0] * ratio)
        return int(self.attribution.tokens[first:last].sum())

    def added_after(self, index: int) -> int:
        """Prompt tokens of what was said between a compaction and the first call after it."""
        return self.between(self.recorded(index).at, self.session.calls[self.compaction(index).step].at)

    def before(self, index: int) -> int:
        """The request had a compaction not been made: the recorder's own figure, else the request before, and what came
        since."""
        item, step = self.recorded(index), self.compaction(index).step
        if (item.tokens_before or 0) > 0:
            return int(item.tokens_before or 0) + self.added_after(index)
        if step > 0:
            return self.sent[step - 1] + self.log_grew(step - 1, step)
        return self.attribution.overhead + self.between(0, self.session.calls[0].at)

    @cached_property
    def rule(self) -> Trace:
        """The arithmetic of the rule that a claim speaks of: ContextGuard's, where it is the recording's own."""
        if self.session.usage_ratio is None and not self.session.guard_states:
            raise Wrong("no policy's rule is the recording's own")
        return observe_recorded(self.ledger, get_policy("contextguard"), window=self.window, usage=self.usage)

    def column(self, name: str, step: int) -> int:
        """A whole number of that arithmetic at a step."""
        return int(self.rule.columns[name][step])

    def removes_nothing(self, index: int) -> bool:
        """Does the view after a compaction still hold every message before it."""
        item = self.recorded(index)
        held = {event for part in item.base if isinstance(part, Span) for event in range(part.start, part.stop)}
        return held >= set(range(item.at))


class ReplayStory(Story):
    """A replay: the same session as a policy would have sent it."""

    trace: Trace

    def __init__(self, session: Session, window: WindowJudgement, trace: Trace) -> None:
        super().__init__(session, window)
        self.trace = trace
        self.window = trace.window

    @cached_property
    def views(self) -> list[tuple[View, int]]:
        return [(self.trace.view(step, call.at), -1) for step, call in enumerate(self.session.calls)]

    @cached_property
    def sent(self) -> list[int]:
        return [max(0, int(count)) for count in self.trace.columns["modelled_prompt_tokens"]]

    @cached_property
    def compactions(self) -> list[CheckedCompaction]:
        return [CheckedCompaction(place, record.step, False) for place, record in enumerate(self.trace.compactions)]

    def before(self, index: int) -> int:
        record = self.record(index)
        return max(0, self.usage.one(record.step, record.before, record.tokens_before).tokens)

    def record(self, index: int) -> CompactionRecord:
        if not 0 <= index < len(self.trace.compactions):
            raise Wrong(f"there is no compaction {index}, but {len(self.trace.compactions)}")
        return self.trace.compactions[index]

    @property
    def rule(self) -> Trace:
        return self.trace

    @cached_property
    def whole(self) -> list[int]:
        """Prompt tokens at every step had nothing been compacted."""
        return [self.price(step, (Span(0, call.at),), -1) for step, call in enumerate(self.session.calls)]


def spoken(text: str) -> str:
    """A text as it would be read aloud: case, white space and typography do not matter."""
    for pattern, sign in _TYPOGRAPHY:
        text = pattern.sub(sign, text)
    return text.casefold().strip()


def heard(text: str) -> set[str]:
    """A text as it would be read aloud, by one who reads every sign and by one who knows Markdown and escapes."""
    bare = html.unescape(_ESCAPED.sub(_unescaped, text))
    for pattern, sign in _WRITTEN_AROUND:
        bare = pattern.sub(sign, bare)
    return {spoken(text), spoken(bare) or spoken(text)}


def _is_affirmed(text: str, words: str) -> bool:
    """Has a text some words at a place that no "not" or "never" comes right before."""
    pieces = text.split(words)
    before_each = [words.join(pieces[: place + 1]) for place in range(len(pieces) - 1)]
    return any(not _ends_in_denial(before) for before in before_each)


def _ends_in_denial(before: str) -> bool:
    """Does a text end in a word that denies what follows, also with "ever" or "to" behind it."""
    last = [word.strip("'(*:;,.") for word in before.split()[-2:]] if before.endswith(" ") else []
    if last and last[-1] in ("ever", "to"):
        last.pop()
    return bool(last) and last[-1] in _DENIALS


def _unescaped(escape: re.Match[str]) -> str:
    """The sign that an escape with a backslash is for; of white space only the end of a line matters."""
    sign = escape[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else {"n": "\n", "r": " ", "t": " "}.get(sign, sign)


def _begins_turn(event: Event) -> bool:
    return (
        event.role == "user"
        and not event.meta
        and bool(event.parts)
        and not any(isinstance(part, ToolResultPart) for part in event.parts)
    )


def own_texts(item: RecordedCompaction) -> list[Event]:
    """The messages that a compaction itself put into the context."""
    return [*item.messages, *(part.message for part in item.base if isinstance(part, Rewritten))]


def holds(view: View, event: int) -> bool:
    """Does a view send this event of the log as it was, or within a message that joins it with others."""
    for part in view:
        if isinstance(part, Span) and part.start <= event < part.stop:
            return True
        if isinstance(part, Rewritten) and part.event == event and part.reason == JOINED:
            return True
    return False


def same(name: str, claimed: Any, real: Any) -> None:
    """Raise Wrong where a number of a claim is another."""
    differs = abs(claimed - real) > 1e-6 if isinstance(real, float) else claimed != real
    if differs:
        raise Wrong(f"{name} is {real}, not {claimed}")


def number(finding: Finding, name: str) -> Any:
    """A number that the claim must have."""
    if name not in finding.numbers:
        raise Wrong(f"the claim does not say {name}")
    return finding.numbers[name]


def agree(finding: Finding, **real: Any) -> None:
    """Compare some numbers of a claim."""
    for name, value in real.items():
        same(name, number(finding, name), value)


def step_of(story: Story, finding: Finding, name: str = "") -> int:
    """A step that a claim speaks of; Wrong where the session has none such."""
    step = number(finding, name) if name else finding.step
    if not 0 <= step < len(story.sent):
        raise Wrong(f"{name or 'step'} {step} is not in the session of {len(story.sent)} calls")
    return int(step)
