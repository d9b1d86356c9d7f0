"""The schema of a report: version 1.

A report is one JSON object. Steps, messages and compactions count from 0 in fields and from 1 in sentences; -1 is none.
Tokens are prompt tokens, money is in millionths of a US dollar, null where the price table has no price. Every number
has its source: a `source` beside it, or the name of its field. `digest` is the SHA-256 of the document with an empty
`digest`, as compact JSON in the order of the fields below.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec

from guard_core.errors import GuardError
from guard_core.trace import Term

SCHEMA = "compaction-inspector/report"
# Raise it when a reader of the version before would misread a document; a field that is added later has a default.
VERSION = 1
D = TypeVar("D", bound=msgspec.Struct)
MOST_BYTES = 16 * 2**20  # of a document that is read: ours, many times what a report of a long session takes


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A finding or verdict: `guard_core.findings.Finding` with all its fields."""

    kind: str
    severity: str
    step: int
    sentence: str
    numbers: dict[str, Any]
    assumptions: tuple[str, ...]
    steps: tuple[int, ...] = ()
    count: int = 1


class ReportSetting(msgspec.Struct, frozen=True):
    """A number that the agent's rule is made of; null: not known, the note says why."""

    name: str
    value: float | None
    unit: str
    source: str
    note: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of the agent itself. It compacts where its count `relation` the threshold; `agrees` of the `comparable`
    automatic compactions fit it. `agent` is empty where the rule is not known."""

    agent: str
    version: str
    sentence: str
    relation: str
    threshold: int | None
    formula: str
    compared: str
    settings: tuple[ReportSetting, ...]
    automatic: int
    comparable: int
    agrees: int


class ReportBridgePart(msgspec.Struct, frozen=True):
    """One part of the requests: before + grown - removed + inserted + unexplained = after."""

    name: str
    before: int
    grown: int
    removed: int
    inserted: int
    after: int
    unexplained: int


class ReportBridge(msgspec.Struct, frozen=True):
    """From the last request before a compaction to the first one after it, by parts."""

    parts: tuple[ReportBridgePart, ...]
    before_step: int | None
    after_step: int | None
    before_source: str
    after_source: str
    is_sealed: bool  # the summary is not readable: its tokens are in the part "unexplained"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction cost at once and saved since; modelled."""

    paid: int | None
    saved: int | None
    earned_back: int
    needed_from: int
    sentences: tuple[str, ...]


class ReportDecision(msgspec.Struct, frozen=True):
    """Why it compacted: the check before the call as arithmetic."""

    sentence: str
    inequality: str
    terms: tuple[Term, ...]


class ReportInserted(msgspec.Struct, frozen=True):
    """A message that a compaction wrote. `text` is empty where it is withheld or not known."""

    kind: str
    bytes: int
    text: str


class ReportCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction. `before` is the request that it replaced, the last one and what was added since (0: none), and
    `after` the first one after it, with their sources; `instructions_lost` counts sentences that no later request is
    known to have up to where it comes back. The fields from `decision` on are those of a chosen compaction."""

    index: int
    step: int
    message: int  # messages in the log before it
    trigger: str
    evidence: str
    before: int  # 0: not known, for the file does not hold what was removed
    before_source: str
    after: int
    after_source: str
    count: int | None  # that was compared with the threshold
    threshold: int | None
    agreement: str
    reason: str
    instructions_lost: int
    decision: ReportDecision | None = None
    bridge: ReportBridge | None = None
    price: Price | None = None
    inserted: tuple[ReportInserted, ...] = ()


class Series(msgspec.Struct, frozen=True):
    """The requests as drawn: chosen steps with their prompt tokens; `modelled` says where no provider counted. Of a
    long session the smallest and largest of each stretch are kept. `threshold` is the agent's or the policy's, -1:
    none."""

    steps: tuple[int, ...]
    tokens: tuple[int, ...]
    modelled: tuple[bool, ...]
    threshold: tuple[int, ...]


class ReportCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and price of all calls; `source` says whether the cache's share was reported or modelled."""

    prompt: int
    cached: int
    output: int
    summariser_prompt: int
    summariser_output: int
    total: int | None
    source: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The figures by which sides are compared."""

    compactions: int
    automatic: int
    manual: int
    unknown_trigger: int
    overflows: int
    near_misses: int
    peak: int
    peak_step: int
    peak_source: str
    total_prompt_tokens: int
    requests: int  # messages that began a turn
    requests_dropped: int
    calls_without_result_steps: int
    never_paid: int | None
    costs: ReportCosts
    reported: ReportCosts | None
    is_least: bool = False  # the file does not hold all that was removed: more requests may have been dropped


class Fact(msgspec.Struct, frozen=True):
    """An instruction and what became of it: `outcome` in words, `state` in the last request, `lost_at` the step, and
    the compaction, from which on no request is known to have it (-1: none)."""

    kind: str
    text: str
    message: int
    state: str
    lost_at: int
    compaction: int
    outcome: str

    @property
    def words(self) -> str:
        """The text, and where it is withheld, what surrounds it."""
        return self.text or (f"message {self.message + 1:,}" if self.message >= 0 else "system prompt")


class FactsLost(msgspec.Struct, frozen=True):
    """The instructions of users and of the system prompt, counted; `listed` has the worst. `unknown`: the last request
    may have them in a summary that cannot be read or compared, or the recorded prompt fell since."""

    sentence: str
    instructions: int
    held: int
    lost: int
    unknown: int
    listed: tuple[Fact, ...]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The recording, or a replay of it. `digest` is that of the replay's trace; `compactions` are the first of
    `outcome.compactions`."""

    name: str  # "recorded" or "replayed"
    policy: str
    profile: str
    settings: dict[str, Any]
    digest: str
    verdict: Claim
    findings: tuple[Claim, ...]
    outcome: Outcome
    facts: FactsLost
    compactions: tuple[ReportCompaction, ...]
    series: Series


class ReportWindow(msgspec.Struct, frozen=True):
    """The context window in tokens, where it comes from and how far it can be relied on."""

    value: int
    source: str
    status: str
    note: str


class ForecastError(msgspec.Struct, frozen=True):
    """How far modelled counts are off: relative errors of `calls` predictions `ahead` ("1", "10", "50" calls,
    "compaction"), made from the past only: their mean size and the 95th percentile."""

    ahead: str
    calls: int
    mean: float
    p95: float


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The session. `digest` is the SHA-256 of its export in the project's own format; `tools` those that were called
    most, with their calls."""

    digest: str
    title: str
    agent: str
    format: str
    model: str
    calls: int
    reported_calls: int
    messages: int
    tools: tuple[tuple[str, int], ...]


class Remark(msgspec.Struct, frozen=True):
    """What the author of a report says; `step` (from 0) is where, -1: of the whole report."""

    step: int
    text: str


class Hidden(msgspec.Struct, frozen=True):
    """How many places of one kind were redacted."""

    kind: str
    count: int


class ReportParameters(msgspec.Struct, frozen=True, kw_only=True):
    """What the report was made with, so that it can be made again. `rule` has settings of the agent's own rule,
    `chosen` are the compactions shown in full, null: the first ones."""

    policy: str
    settings: dict[str, Any]
    summary: str
    window: int | None
    rule: dict[str, str]
    chosen: tuple[int, ...] | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction report."""

    schema: str = SCHEMA
    version: int = VERSION
    engine_version: str
    level: str
    title: str = ""
    remarks: tuple[Remark, ...] = ()
    asked: ReportParameters
    session: SessionFacts
    window: ReportWindow
    rule: Rule
    sides: tuple[Side, ...]  # the recording, where there is one, then the replay
    prices: tuple[str, ...]
    forecast: tuple[ForecastError, ...]
    assumptions: tuple[str, ...]
    hidden: tuple[Hidden, ...] | None = None  # what was redacted; null: nothing was looked for
    digest: str = ""


def sealed(report: D) -> D:
    """A document of any schema as it is when it is read again, with its digest."""
    plain = msgspec.json.decode(msgspec.json.encode(report), type=type(report))
    return msgspec.structs.replace(plain, digest=digest_of(msgspec.json.encode(plain)))


def digest_of(data: bytes) -> str:
    """The digest of a document: SHA-256 of its JSON without white space and with an empty `digest`. All that is written
    counts, in its order, whatever an earlier or later version of this program made of it."""
    plain = {**msgspec.json.decode(data, type=dict[str, Any]), "digest": ""}
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()


def encode(report: msgspec.Struct) -> bytes:
    """A report, of whatever kind, as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def decode(data: bytes) -> Report:
    """A report from its JSON. Raises GuardError for anything else."""
    return decode_as(data, Report, SCHEMA, VERSION)


def schema_of(data: bytes) -> str:
    """What a document says that it is; "" for anything else."""
    try:
        return str(msgspec.json.decode(data[:MOST_BYTES], type=dict[str, Any]).get("schema", ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def decode_as(data: bytes, kind: type[D], expected: str, readable: int) -> D:
    """A document of one schema and version from its JSON. Raises GuardError for anything else."""
    if len(data) > MOST_BYTES:
        raise GuardError(f"a report of {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    if data.lstrip()[:1] == b"<":
        raise GuardError("this is HTML; a report is read as JSON, which `report FILE -o report.json` writes")
    try:
        head = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        schema, version = (msgspec.json.decode(head.get(name, msgspec.Raw(b"null"))) for name in ("schema", "version"))
        if schema != expected:
            raise GuardError(f"not a report: its schema is {ascii(schema)[:60]}, not {expected!r}")
        if version != readable:
            raise GuardError(f"a report of version {ascii(version)[:20]}; this program reads version {readable}")
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GuardError(f"not a report: {error}") from error
