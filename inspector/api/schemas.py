"""The shapes of what the API answers, for its OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import ConfigDict


class Problem(Schema):
    """What is wrong, in a sentence. `index` names a line, `expected` the number of the next line of the stream."""

    error: str
    index: int | None = None
    expected: int | None = None


class Acknowledged(Schema):
    """Lines below the number `acknowledged` are stored for good; of the batch so many now, and so many repeated."""

    acknowledged: int
    stored: int
    repeated: int
    session: str | None = None
    url: str | None = None
    steps: int | None = None


class SessionRow(Schema):
    """One session. Tokens are the provider's, unless a source says otherwise, or `counted_in` that they seem to be
    "characters" or are "estimates" and not "tokens". `prompt_tokens_max` is 0 where nothing is reported, `peak_window`,
    the window of the model that the largest request went to, where that is not known. `severity` is the
    verdict's, None where there is none; `started` is what the recording says, None where it does not."""

    id: str
    title: str
    format: str
    agent: str
    model: str
    window: int
    window_source: str
    events: int
    steps: int
    compactions: int
    prompt_tokens_max: int
    peak_tokens: int
    peak_source: str
    peak_window: int
    counted_in: str
    threshold: int | None
    threshold_source: str
    verdict: str
    assessed: bool
    severity: str | None
    started: datetime | None
    added: datetime
    url: str


class SessionList(Schema):
    """Some sessions, the newest first, and how many there are."""

    count: int
    sessions: list[SessionRow]


class Step(Schema):
    """One model call, counted from 0. `at`: log events when the request was built; `model`: the session's where the
    call names none. None: not reported."""

    step: int
    at: int
    response: int | None
    model: str
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None


class StepList(Schema):
    """Some steps of a session, and how many it has."""

    count: int
    steps: list[Step]


class Compaction(Schema):
    """One recorded compaction that counts. Tokens are the recorder's own figures, `step` is the first call that it
    changed (from 0), -1 where none came; `at`: log events before it."""

    step: int
    at: int
    kind: str
    trigger: str
    evidence: str
    tokens_before: int | None
    tokens_after: int | None
    note: str


class CompactionList(Schema):
    """The recorded compactions of a session."""

    compactions: list[Compaction]


class Finding(Schema):
    """One claim, as a sentence and as data: steps from 0, tokens, shares from 0 to 1."""

    kind: str
    severity: str
    step: int
    sentence: str
    numbers: dict[str, Any]
    assumptions: list[str]
    steps: list[int]
    count: int


class Findings(Schema):
    """What is claimed of a recording under the window in use. `verdict` is None where it has no model call."""

    verdict: dict[str, Any] | None
    findings: list[Finding]


class UnderWay(Schema):
    """What was asked for takes long and is being computed: ask again after the seconds of `Retry-After`. `done` of
    `total` steps are replayed."""

    state: str
    done: int
    total: int


class Replays(Schema):
    """A row for the recording (`policy` is "") and one for each policy. `outcome` is None where a policy cannot be
    replayed here, for the reason in `problem`; its steps count from 0, -1 where there is none, its tokens are recorded
    or modelled, as its `side` says. Costs are in the unit `money`, None where a price is not known. `window` is that of
    the replays in tokens, `windows` those of the calls; `floor` are the cycles of clearing tool results alone."""

    rows: list[dict[str, Any]]
    window: int
    windows: list[dict[str, int]]
    counted_in: str
    floor: list[dict[str, Any]]
    assumptions: list[str]
    money: str


class ReplayColumn(Schema):
    """One number of each step of a replay."""

    name: str
    meaning: str
    unit: str


class Replay(Schema):
    """One replay. `windows` are those of the calls in tokens, the replay's first; `figures` are modelled prompt tokens
    and steps from 0, -1 where there is none; `first_difference` is the step at which the first request differs from the
    recorded one. Equal replays have equal digests."""

    policy: str
    settings: dict[str, Any]
    window: int
    window_source: str
    windows: list[dict[str, int]]
    engine: str
    digest: str
    steps: int
    first_difference: int | None
    figures: dict[str, Any]
    findings: list[dict[str, Any]]
    notes: list[str]
    columns: list[ReplayColumn]


class ReplayRows(Schema):
    """Some steps or compactions of a replay, and how many there are."""

    count: int
    rows: list[dict[str, Any]]


class SweepRow(Schema):
    """One sweep: so many settings over so many sessions, and how far it is."""

    id: str
    name: str
    settings: int
    created: datetime
    url: str
    under_way: bool
    cancelled: bool
    replays_done: int
    replays: int
    sessions_done: int
    sessions: int
    left_out: int


class SweepList(Schema):
    """Some sweeps, the newest first, and how many there are."""

    count: int
    sweeps: list[SweepRow]


class SweepAnswer(SweepRow):
    """One sweep with its question; `answer` once it has ended."""

    question: dict[str, Any]
    answer: dict[str, Any] | None


class SweepCell(Schema):
    """One setting: `windows` (tokens) and `figures` have one entry per session, in the order of the answer's
    `sessions`. Tokens are modelled, steps count from 0, -1 where there is none; `cost` is in millionths of a US dollar.
    What was not asked for, or has no price, is None."""

    values: dict[str, Any]
    windows: list[int]
    figures: list[dict[str, Any]]


class SweepRows(Schema):
    """Some settings of a sweep, and how many it has."""

    count: int
    rows: list[SweepCell]


class Strict(Schema):
    """What is sent, without fields of other names."""

    model_config = ConfigDict(extra="forbid", strict=False)


class Comment(Schema):
    """One comment, at a step, a compaction or a part of a message; these count from 0. `thread`: the comment that it
    answers. `resolved` is the moment at which the thread that it begins was resolved."""

    id: str
    thread: str | None
    place: str
    number: int
    part: int
    author: str
    text: str
    created: datetime
    edited: datetime | None
    resolved: datetime | None
    resolved_by: str
    url: str


class CommentList(Schema):
    """The comments of a session, in the order in which they were written."""

    comments: list[Comment]
