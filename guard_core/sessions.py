"""A session: the append-only log of events, the model calls made over it and the compactions recorded in it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from enum import StrEnum
from typing import Any

import msgspec

from guard_core.bounds import Count, Moment, Number, Ratio, Whole
from guard_core.events import Event, Part
from guard_core.views import Rewritten, View


class Provenance(StrEnum):
    """Where a number comes from. Every number that reaches a person carries one of these."""

    PROVIDER = "provider"  # reported by the model's provider for a request that was really sent
    RECORDER = "recorder"  # estimated by the software that wrote the recording
    STATE = "persisted state"  # read from the state that a policy kept in the recording
    RECOMPUTED = "recomputed"  # computed here from the recorded text
    MODELLED = "modelled"  # what the provider would have reported for a request that was never sent
    MODEL_TABLE = "model table"  # looked up by model name in genai-prices
    PROMPTS = "recorded prompts"  # the one documented variant of a model that holds the prompts that were answered
    USER = "user"  # typed in by the user
    ASSUMED = "assumed"  # a default, because nothing better is known


class Sourced(msgspec.Struct, frozen=True, gc=False):
    """A number with its source and a note a person can read."""

    value: Whole
    source: Provenance
    note: str = ""


GUARDS_WINDOW = "the window that its guard was given"  # notes of the windows that a `Recorder` writes
RECORDERS_WINDOW = "the window that its recorder was given"


class ToolDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool offered to the model. `schema` is the decoded JSON schema of its parameters."""

    name: str
    description: str = ""
    schema: Any = None


class ModelCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One step: a request sent to the model, and what came back.

    `at` is the number of log events that existed when the request was built; `response` the index of the event
    that answered it (None: it failed or is not in the file). Token counts are the provider's, None where it
    reported nothing; `prompt_tokens` always includes cached tokens. `output_tokens_at_start` is what the provider had
    counted when the answer began, where the file has that and not the final count. `pending_tokens` is the estimate by
    which the agent counts what was appended between the last answer and this request, in tokens: computed from the file
    by readers of agents whose estimate is of other texts than those sent; None elsewhere. `compared_tokens` is what a
    guard of this package compared with its threshold before this request, in tokens; None without a guard, and where it
    compared none. `cache_hour_tokens` are those of `cache_write_tokens` that the cache keeps for an hour; None where
    the file does not say how long it keeps them.
    """

    at: Count
    response: Count | None = None
    prompt_tokens: Count | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    output_tokens: Count | None = None
    model: str = ""
    timestamp: Moment | None = None
    line: Count | None = None
    source_id: str = ""
    output_tokens_at_start: Count | None = None
    pending_tokens: Whole | None = None
    compared_tokens: Count | None = None
    cache_hour_tokens: Count | None = None


class AgentSetting(msgspec.Struct, frozen=True, omit_defaults=True):
    """A setting of the agent's compaction that the recording holds. `note` says where; the unit is that of its rule."""

    name: str
    value: Number
    note: str = ""


ANSWER_LIMIT = "max_output_tokens"  # the setting with the most tokens that a request of the session allows its answer


class Evidence(StrEnum):
    """How sure it is that a compaction happened."""

    DECLARED = "declared"  # the recording has a record of its own for it
    INFERRED = "inferred"  # the history shrank or was replaced
    MATCHED = "matched"  # a message has the wording that the software uses


class RecordedCompaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction that really happened, as the recording has it.

    `at` is the number of log events before it. `base` is the request's content right after it: spans of the
    log that were kept, and inserted messages (`Inserted(index)` into `messages`). The request of a later call is
    `base` followed by the events from `at` on. `messages` are not part of the log, so that a replay of the log under
    another policy does not contain them. `tokens_before` and `tokens_after` are the recorder's own figures,
    `pending_tokens` is as of a call. `restored_tokens` are the lexical tokens of files that the agent attached
    again by its rule and that the recording does not hold, None where that is not known. `refused_behind` is how many
    of the requests refused at `at` (`Session.refused`) were sent after it; the others were sent before it.
    """

    at: Count
    evidence: Evidence
    kind: str  # summary, summary+tail, empty (a summary without text), fallback, opaque, trim, edit
    base: View
    messages: tuple[Event, ...] = ()
    trigger: str = ""  # auto, manual, or the recorder's own word
    tokens_before: Count | None = None
    tokens_after: Count | None = None
    summariser: ModelCall | None = None
    line: Count | None = None
    timestamp: Moment | None = None
    note: str = ""
    pending_tokens: Whole | None = None
    restored_tokens: Count | None = None
    refused_behind: Count = 0

    @property
    def own_messages(self) -> tuple[Event, ...]:
        """The messages that it put into the context itself: inserted, and changed ones of the log."""
        return (*self.messages, *(part.message for part in self.base if isinstance(part, Rewritten)))


class GuardState(msgspec.Struct, frozen=True, omit_defaults=True):
    """ContextGuard's own state keys as a recording holds them, after the event with index `at` - 1."""

    at: Count
    agent: str
    summary: str | None = None
    summarized_at: Whole | None = None
    contents_at_compaction: Whole | None = None
    real_tokens: Whole | None = None
    last_heuristic: Whole | None = None


# The note of a conversation in a file of requests whose beginning is perhaps a summary of an earlier one.
MAY_CONTINUE = (
    "This conversation begins where another one in this file ends, and names files or identifiers of that one: perhaps "
    "it continues from a summary. The file does not say so."
)
# The note of that earlier conversation.
MAY_BE_CONTINUED = (
    "A later conversation in this file perhaps continues this one from a summary: it names files or identifiers of "
    "this one. The file does not say so."
)
# The notes of two such conversations where only whole passages of the earlier one suggest it.
MAY_REPEAT = (
    "This conversation begins where another one in this file ends, and repeats passages of several messages of that "
    "one: perhaps it continues from a summary. The file does not say so."
)
MAY_BE_REPEATED = (
    "A later conversation in this file perhaps continues this one from a summary: it begins with passages of several "
    "messages of this one. The file does not say so."
)
# The notes of two such conversations where only the word suggests it.
MAY_BEGIN_WITH_SUMMARY = (
    "This conversation begins where another one in this file ends, and its first message is headed a summary: perhaps "
    "it continues from one. The file does not say so."
)
MAY_BE_SUMMARISED = (
    "A later conversation in this file perhaps continues this one from a summary, as its first message is headed. The "
    "file does not say so."
)
# The notes of two such conversations where only their sizes and their order suggest it.
MAY_FOLLOW = (
    "This conversation begins where a far longer one of the same model, system prompt and tools ends: perhaps it "
    "continues that one from a summary. The file does not say so."
)
MAY_GO_ON = (
    "Where this conversation ends, a far shorter one of the same model, system prompt and tools begins: perhaps that "
    "one continues it from a summary. The file does not say so."
)
# The note of a recording in which a compaction may have left no trace.
UNRECORDED_COMPACTIONS = "A compaction need not be in the file."
# The note of a recording of which lines, or records, could not be read.
DAMAGED = "Damaged lines or records of the file were left out: what they held is not among these messages."
# The note of a recording of calls without their messages.
NO_CONTENT = "No message content was found: the tokens of each call are known, and a compaction need not show."
# The note of a recording in which something looks like counts of tokens, and no call has one.
COUNTS_UNREAD = (
    "Numbers of the file that look like counts of tokens are in places or under names that are not known here: they "
    "were left out."
)
# The note of a conversation of which only the model's answers were kept.
ANSWERS_ONLY = "What was sent to the model is not in the file, only what came back."
# The note of a call that an agent keeps as a session of its own.
WROTE_SUMMARY = (
    "This is the call that wrote the summary of a compaction: what it was sent is the conversation before it."
)
# The note of a conversation whose first messages open as clients open the summary of a compaction, or with one that
# another conversation of the file continued from.
BEGINS_WITH_SUMMARY = (
    "By its first message this conversation begins with a summary of an earlier context, which is no part of it. The "
    "file does not say that it continues one."
)


# The note of a conversation whose first messages are headed as a summary is, in no words that a known client uses.
HEADED_SUMMARY = (
    "A message before the model's first one is headed as the summary of a conversation: perhaps this one continues "
    "from it. The file does not say so."
)


class SubAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that a tool call of another one started, by the names that the recording gives to both."""

    session: str  # the `source_id` of the session that was started
    call: str  # the id of the tool call
    at: Count | None = None  # the event with that call, None: it is not in the log


class LeftBranches(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a recording holds on branches that were left, by a rewind or an edit, and that is not in the log.

    `compactions` and `refused` are counted as those of the log. `largest` is the largest prompt in tokens that the
    provider counted there.
    """

    messages: Count = 0
    compactions: Count = 0
    refused: Count = 0
    largest: Count = 0


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider stated when it refused a request as too long, both in prompt tokens, 0 where it did not say:
    `tokens` is how many the request had, `limit` the most that it would have taken. `at` is as in `Session.refused`."""

    at: Count
    tokens: Count = 0
    limit: Count = 0


class Session(msgspec.Struct, frozen=True, omit_defaults=True, weakref=True):
    """One agent conversation, immutable.

    `system` and `tools` are None where the format does not record them: the gap is then named, not guessed.
    `side_calls` are calls outside the main context (sub-agents, titles, summarisers): counted apart. `sub_agents` are
    the sessions that its tool calls started, `parent` is the `source_id` of the session that this one belongs to: each
    only where the file says so. `prompt_tokens_total` is what the provider counted over all `total_calls` answered
    requests of the session, in tokens, cached ones included: of files that hold this sum and no count of any call;
    `total_calls` is None where the file does not say how many there were. `versions` are those of the agent that wrote
    the recording, each with the event from which it holds (in the log's order); empty where the file has none.
    `settings` are those of the agent's compaction, where the file has them. `written_by` is the format of the agent's
    own recordings where another program recorded its requests and knew the agent; empty everywhere else. `refused` has,
    for each request that failed because it was too long, in files that hold such errors and no call for them, the
    number of log events before it; `refusals` are those of which the provider stated a size. `windows` are the context
    windows in tokens where the file states several, each with the event from which it holds; `window` is the last of
    them. `left` is what is on branches that were left, None where the file has none or the format no branches.
    `guarded_by` is the policy, by its name in the registry, of the guard that recorded the session while it decided
    over its requests; empty elsewhere. `cache_seconds` is how long the provider's cache keeps most of what these calls
    wrote, where the file says so, else 0.
    """

    events: tuple[Event, ...]
    calls: tuple[ModelCall, ...] = ()
    compactions: tuple[RecordedCompaction, ...] = ()
    guard_states: tuple[GuardState, ...] = ()
    side_calls: tuple[ModelCall, ...] = ()
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    format: str = ""
    source_id: str = ""
    parent: str = ""
    sub_agents: tuple[SubAgent, ...] = ()
    title: str = ""
    agent: str = ""
    model: str = ""
    window: Sourced | None = None
    started_at: Moment | None = None
    notes: tuple[str, ...] = ()
    usage_ratio: Ratio | None = None  # simulated sessions only: prompt tokens = trunc(heuristic * ratio)
    usage_reported_from: Count = 0  # simulated sessions only: first step at which usage is reported
    prompt_tokens_total: Count | None = None
    total_calls: Count | None = None
    versions: tuple[tuple[Whole, str], ...] = ()
    settings: tuple[AgentSetting, ...] = ()
    written_by: str = ""
    refused: tuple[Whole, ...] = ()
    windows: tuple[tuple[Whole, Whole], ...] = ()
    left: LeftBranches | None = None
    guarded_by: str = ""
    cache_seconds: Count = 0
    refusals: tuple[Refusal, ...] = ()

    @property
    def agent_format(self) -> str:
        """The format in which the agent itself records, whoever recorded this session: its rule goes by that name."""
        return self.written_by or self.format

    @property
    def version(self) -> str:
        """The last version of the agent that the file names, "" where it names none."""
        return self.versions[-1][1] if self.versions else ""

    @property
    def refused_places(self) -> list[tuple[int, int]]:
        """Each of `refused`, in order, with the number of compactions before it."""
        starts, totals = [item.at for item in self.compactions], Counter(self.refused)
        behind: dict[int, list[int]] = {}
        for number, item in enumerate(self.compactions, 1):
            own = behind.setdefault(item.at, [])
            own += [number] * min(item.refused_behind, totals[item.at] - len(own))
        places: list[tuple[int, int]] = []
        for at, total in sorted(totals.items()):
            own = behind.get(at, [])
            places += [(at, bisect_left(starts, at))] * (total - len(own)) + [(at, number) for number in own]
        return places

    @property
    def mean_prompt_tokens(self) -> int | None:
        """Prompt tokens of a request on average over `total_calls`, rounded: the largest request has at least these."""
        if not self.prompt_tokens_total or not self.total_calls:
            return None
        return (self.prompt_tokens_total + self.total_calls // 2) // self.total_calls
