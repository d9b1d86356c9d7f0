"""The five sample sessions, made here and always the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.sessions import GuardState, Session, ToolDefinition
from guard_core.simulator import wording
from guard_core.simulator.recorder import SimulationRecorder, Tool, event_tokens, provider_tokens
from guard_core.simulator.wording import Dice
from guard_core.tokens.heuristic import event_costs, parts_costs, tool_definition_tokens


@dataclass(frozen=True)
class Sample:
    """One sample session: `name` for addresses, `title` and `blurb` for its card, `build` makes it."""

    name: str
    title: str
    blurb: str
    build: Callable[[], Session]


SYSTEM = """You are a careful engineering assistant working in the repository and the clusters of one team.

Rules:
- Read before you write. Run the tests after every change and show what failed.
- Never delete data, rotate secrets or touch production without being asked in this conversation.
- Prefer small changes. Say what you left alone and why.
- When a command prints more than you need, say which lines matter instead of repeating all of them.
- If something is unclear, choose the safer reading, say so, and go on."""


def _tool(name: str, description: str, **parameters: str) -> ToolDefinition:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)[:1]}
    return ToolDefinition(name=name, description=description, schema=schema)


TOOLS = (
    _tool("run_command", "Run a shell command and return its output.", command="The command line", folder="Where"),
    _tool(
        "read_file", "Read a text file with line numbers.", path="Path from the root", start="First line", end="Last"
    ),
    _tool("apply_patch", "Apply a unified diff to the working tree.", patch="The diff"),
    _tool("search", "Search the project for a word.", word="What to look for", glob="Which files"),
    _tool("run_sql", "Run a read-only query against the reporting database.", statement="The query"),
    _tool("cluster", "Ask the cluster's API: get, describe, logs.", verb="get, describe or logs", resource="What"),
)


# What an agent does in one call, by kind of work: with the size that `work` draws for what the tool returns.


def _read(dice: Dice, lines: int) -> Tool:
    return "read_file", {"path": wording.path(dice), "start": 1, "end": lines}, wording.source(dice, lines)


def _search(dice: Dice, lines: int) -> Tool:
    """The word is one of those that names in the code are made of."""
    word = dice.pick(wording.NOUNS)
    return "search", {"word": word, "glob": "**/*.py"}, wording.matches(dice, word, lines)


def _tests(dice: Dice, tests: int) -> Tool:
    """At most two of the tests fail."""
    area = dice.pick(wording.AREAS)
    command = {"command": f"pytest tests/{area} -q", "folder": "."}
    return "run_command", command, wording.tests_output(dice, tests, dice.below(3))


def _list(dice: Dice, lines: int) -> Tool:
    folder = f"orchard/{dice.pick(wording.AREAS)}"
    return "run_command", {"command": f"ls -la {folder}", "folder": "."}, wording.listing(dice, folder, lines)


def _patch(dice: Dice, hunks: int) -> Tool:
    """The one kind whose call is long and whose result is short."""
    file = wording.path(dice)
    return "apply_patch", {"patch": wording.diff(dice, file, hunks)}, f"applied to {file}: {hunks} hunks, 0 rejected"


def _query(dice: Dice, rows: int) -> Tool:
    """As many rows as the statement asks for, as JSON."""
    statement = (
        f"select id, tenant, state, total_cents from {dice.pick(wording.AREAS)} order by created_at limit {rows}"
    )
    return "run_sql", {"statement": statement}, wording.rows_json(dice, rows)


def _logs(dice: Dice, lines: int) -> Tool:
    service = dice.pick(wording.AREAS)
    return "cluster", {"verb": "logs", "resource": f"deploy/{service}"}, wording.logs(dice, service, lines)


def _pods(dice: Dice, pods: int) -> Tool:
    """As a table, with a line for each pod."""
    return "cluster", {"verb": "get", "resource": "pods -o wide"}, wording.pod_table(dice, pods)


def _pods_json(dice: Dice, pods: int) -> Tool:
    """As JSON, which takes many lines for each pod."""
    return "cluster", {"verb": "get", "resource": "pods -o json"}, wording.pods_json(dice, pods)


CODING = ((_read, 40, 170), (_read, 90, 260), (_search, 8, 60), (_tests, 12, 55), (_patch, 1, 9), (_list, 6, 40))
_OPERATIONS = ((_logs, 20, 110), (_pods, 10, 60), (_pods_json, 4, 22), (_query, 5, 30))


def work(dice: Dice, kinds: tuple[tuple[Callable[[Dice, int], Tool], int, int], ...], scale: float = 1.0) -> Tool:
    """One tool call of one of these kinds, each with its smallest and largest size, times `scale`."""
    make, low, high = dice.pick(kinds)
    return make(dice, max(1, round(dice.between(low, high) * scale)))


# Healthy: a day's work that stays within its window.

HEALTHY_REQUESTS = (
    "The nightly invoice run took four hours yesterday. Find out where the time goes, change nothing yet.",
    "OK, the repeated lookups. How many queries does one invoice cost us today?",
    "Prefetch the tenants and the prices, then show me the numbers again.",
    "Do the orders have the same problem?",
    "Fix it there too, in its own commit.",
    "Some tests count queries. Please make them exact instead of 'at most'.",
    "What happens to a tenant without a price list?",
    "Then skip it with a warning, do not fail the whole run.",
    "Add the warning to the morning report as well.",
    "Please check that the report still fits on one page for large tenants.",
    "Rename the setting while you are there: it says batch, it means page.",
    "Is the old name used anywhere outside this repository? Search the deployment folder.",
    "Keep the old name working for one release, with a deprecation note.",
    "Write the changelog entry.",
    "Run everything once more and give me a list of what you touched.",
)


def _healthy() -> Session:
    dice = Dice(2026)
    recorder = SimulationRecorder(system=SYSTEM, tools=TOOLS, model="claude-sonnet-4-5")
    for index, request in enumerate(HEALTHY_REQUESTS):
        recorder.user(request)
        for _ in range(3 + index % 3):
            recorder.act(wording.remark(dice), work(dice, CODING, 1.65))
        recorder.answer(wording.report(dice, dice.between(2, 6)))
    return recorder.session(title="Healthy: a day of refactoring in a 200k window", window=200_000)


# The timing gap: 140,000 tokens seen, 180,018 really there at the next call.

GAP_HEURISTIC_SEEN, GAP_HEURISTIC_NOW, GAP_RATIO = 70_000, 90_009, 2  # design document 000, part 3: "Proof"


def _doubled(event: Event) -> int:
    """The provider of the timing gap counts exactly twice the heuristic (bytes // 4)."""
    return GAP_RATIO * sum(event_costs(event))


def _gap() -> Session:
    dice = Dice(180)
    system, tools = sum(parts_costs((TextPart(SYSTEM),))), sum(map(tool_definition_tokens, TOOLS))
    recorder = SimulationRecorder(
        system=SYSTEM, tools=TOOLS, model="claude-sonnet-4-5", tokens=_doubled, overhead=GAP_RATIO * (system + tools)
    )
    recorder.user("Checkout answers slowly since noon. Find out which service is to blame.")
    while recorder.context < GAP_RATIO * (GAP_HEURISTIC_SEEN - 9_000):
        recorder.act(wording.remark(dice), work(dice, _OPERATIONS, 1.6))
    _log_up_to(recorder, dice, "pricing", GAP_RATIO * GAP_HEURISTIC_SEEN)
    _log_up_to(recorder, dice, "checkout", GAP_RATIO * GAP_HEURISTIC_NOW)
    last = recorder.calls[-1]
    state = GuardState(at=last.at + 1, agent="operations", real_tokens=last.prompt_tokens)
    text = wording.summary(dice, 9)
    recorder.compact(
        f"[Previous conversation summary]\n{text}\n[End of summary - conversation continues below]",
        "[System: The conversation was compacted because it exceeded the context window. Continue working "
        "on the user's request: find out why checkout has been slow since noon.]",
        note="the count of the call before, 140,000, was still 40,000 below the threshold",
    )
    for _ in range(6):
        recorder.act(wording.remark(dice), work(dice, _OPERATIONS))
    recorder.answer(wording.report(dice, 4))
    session = recorder.session(title="Timing gap: 140,000 seen, 180,018 there", window=200_000)
    return msgspec.structs.replace(session, guard_states=(state,))


def _log_up_to(recorder: SimulationRecorder, dice: Dice, service: str, context: int) -> None:
    """One call whose result brings the context to exactly `context` tokens."""
    arguments = {"verb": "logs", "resource": f"deploy/{service}", "since": "30m"}
    call = f"call_{len(recorder.calls):04d}_0"
    recorder.call(Event(role=Role.MODEL, parts=(ToolCallPart("cluster", arguments, call),)))
    text = wording.logs(dice, service, 1_100)

    def result(size: int) -> Event:
        return Event(role=Role.USER, parts=(ToolResultPart("cluster", text[:size], call),))

    missing = (context - recorder.context) // GAP_RATIO
    size = 4 * missing
    recorder.add(result(size - 4 * (sum(event_costs(result(size))) - missing)))


# A small window, hit by one large result.

_SMALL_SYSTEM = "You help on a small server. Use the tools, keep answers short, never guess a file's content."


def _small_window() -> Session:
    dice = Dice(8_000)
    recorder = SimulationRecorder(system=_SMALL_SYSTEM, tools=TOOLS[:2], model="llama-3-8b-instruct")
    recorder.user("Is the disk full again?")
    recorder.act(
        "", ("run_command", {"command": "df -h"}, "Filesystem  Size  Used Avail Use%\n/dev/vda1   79G   31G   45G  41%")
    )
    recorder.answer("No: 41 % of 79 GB are used.")
    recorder.user("Then why do uploads fail?")
    recorder.act("I'll look at the folder first.", _list(dice, 24))
    recorder.act("Permissions are fine. The log of the web server should tell.", _logs(dice, 38))
    log = wording.access_log(dice, 40_000)
    recorder.act("Timeouts, but no word of uploads.", ("read_file", {"path": "/var/log/web/access.log"}, log))
    recorder.fail()
    refused = f"[The server refused the request: {recorder.context:,} tokens do not fit into its context of 8,000.]"
    recorder.add(Event(role=Role.USER, parts=(TextPart(refused),), meta=True))
    _fall_back(recorder)
    counts = "    219 200\n     61 304\n     58 502\n     49 404\n     47 201"
    command = "cut -d' ' -f9 /var/log/web/access.log | sort | uniq -c | sort -rn"
    recorder.act("I'll only count the answers by status code this time.", ("run_command", {"command": command}, counts))
    recorder.answer("Uploads fail with 502 from one address range; the log itself was too large for me to read whole.")
    recorder.user("Block that range for an hour.")
    recorder.act("", ("run_command", {"command": "fw deny 10.4.0.0/16 --for 1h"}, "rule 17 added, expires in 3600 s"))
    recorder.answer("Done, the rule removes itself in an hour.")
    return recorder.session(title="Small window: 40,000 characters into 8k", window=8_000)


def _fall_back(recorder: SimulationRecorder) -> None:
    """The summariser has the same small window, so a mechanical summary takes the conversation's place."""
    excerpt = [
        f"{event.role.value}: {part.text[:200]}"
        for event in recorder.events
        for part in event.parts
        if isinstance(part, TextPart)
    ]
    recorder.compact(
        "[Previous conversation summary]\n" + "\n".join(excerpt) + "\n[End of summary - conversation continues below]",
        "[System: The conversation was compacted. The user's current request is: `Then why do uploads fail?`]",
        kind="fallback",
        note="the summariser failed: its prompt did not fit either",
    )


# The loop: a compaction that is made, works for one call, and is gone at the next.

LOOP_FIGURES = ((228_967, 8_756), (231_400, 8_798))  # design document 001: "The bug"
LOOP_WINDOW = 150_000  # 20 % buffer: the threshold of 120,000 in that log


def _loop() -> Session:
    dice = Dice(228_967)
    recorder = SimulationRecorder(system=SYSTEM, tools=TOOLS, model="gpt-4.1")
    recorder.user(
        "The cluster restarts pods all over the place. Collect the facts, then tell me what they have in common."
    )
    while recorder.whole_log < 98_000:
        recorder.act(wording.remark(dice), work(dice, _OPERATIONS, 1.2))
    recorder.answer(wording.report(dice, 3))
    recorder.user("Read the logs of the last hour too, all of them.")
    _fill_log(recorder, dice, LOOP_FIGURES[0][0])
    for turn in range(14):
        _compact_in_vain(recorder, dice, LOOP_FIGURES[min(turn, 1)][1] + max(0, turn - 1) * 37)
        if turn == 0:
            _fill_log(recorder, dice, LOOP_FIGURES[1][0])
        else:
            recorder.act(wording.remark(dice), work(dice, _OPERATIONS, 0.5))
    _compact_in_vain(recorder, dice, 9_300)
    recorder.answer(wording.report(dice, 3))
    return recorder.session(title="Loop: the summary is not persisted", window=LOOP_WINDOW)


def _fill_log(recorder: SimulationRecorder, dice: Dice, whole: int) -> None:
    """One call whose results bring the whole log to exactly `whole` tokens."""
    services = wording.AREAS[:6] if whole - recorder.whole_log > 20_000 else wording.AREAS[:1]
    call = f"call_{len(recorder.calls):04d}"
    asked = [
        ToolCallPart("cluster", {"verb": "logs", "resource": f"deploy/{name}"}, f"{call}_{name}") for name in services
    ]
    recorder.call(Event(role=Role.MODEL, parts=tuple(asked)))
    missing = whole - recorder.whole_log - event_tokens(Event(role=Role.USER, parts=()))
    texts = [_text_of(dice, name, missing // len(services)) for name in services]
    texts[0] += " ok" * (missing - sum(map(provider_tokens, texts)))
    parts = tuple(ToolResultPart("cluster", text, part.id) for text, part in zip(texts, asked, strict=True))
    recorder.add(Event(role=Role.USER, parts=parts))


def _text_of(dice: Dice, service: str, tokens: int) -> str:
    """Whole log lines of at most so many tokens."""
    rows: list[str] = []
    while tokens > 0:
        rows.append(wording.logs(dice, service, 1))
        tokens -= provider_tokens("\n" + rows[-1])
    return "\n".join(rows[:-1])


def _compact_in_vain(recorder: SimulationRecorder, dice: Dice, after: int) -> None:
    """A compaction to exactly `after` tokens, made from the whole log because the one before was not kept."""
    close = "[System: The conversation was compacted. Continue working without asking the user to repeat anything.]"
    frames = 2 * event_tokens(Event(role=Role.USER, parts=()))
    room = after - recorder.overhead - frames - provider_tokens(close)
    text = wording.summary(dice, 28)
    while provider_tokens(text) > room:
        text = text[: text.rindex("\n")]
    text += " and so on" * ((room - provider_tokens(text)) // 3) + " ok" * ((room - provider_tokens(text)) % 3)
    recorder.compact(text, close, before=recorder.whole_log)


# A long coding session with three compactions.

LONG_REQUESTS = (
    "We want one database for all tenants instead of one each. Read the models and tell me what stands in the way.",
    "Start with the tenant column on orders and invoices, nullable for now.",
    "Fill the column for existing rows in a data migration, in pages, resumable.",
    "Make every query in checkout go through the tenant manager.",
    "Do the same for catalog and pricing; pricing has raw SQL, be careful there.",
    "The search index needs the tenant too. Rebuild must work while we serve.",
    "Two customers share an invoice number now. What did we plan for that?",
    "Make the column required and add the unique constraints.",
    "Write the runbook for the night we switch over.",
)
LONG_LIMIT = 165_000  # where this agent's software compacts, in its provider's tokens


def _long_coding() -> Session:
    dice = Dice(3)
    recorder = SimulationRecorder(hidden=17_900, model="claude-sonnet-4-5")
    for request in LONG_REQUESTS:
        recorder.user(request)
        for _ in range(15):
            _compact_if_full(recorder, dice)
            reasoning = wording.report(dice, 2) if dice.below(3) == 0 else ""
            # One time in four there are two calls at once.
            recorder.act(
                wording.remark(dice),
                *[work(dice, CODING, 2.7) for _ in range((1, 1, 1, 2)[dice.below(4)])],
                reasoning=reasoning,
            )
        _compact_if_full(recorder, dice)
        recorder.answer(wording.report(dice, dice.between(3, 9)))
    return recorder.session(title="Long coding session: three compactions", window=200_000)


def _compact_if_full(recorder: SimulationRecorder, dice: Dice) -> None:
    if recorder.context < LONG_LIMIT:
        return
    tail = 6 if len(recorder.compactions) == 1 else 0
    recorder.compact(
        "This session continues an earlier one that ran out of context. What happened so far:\n\n"
        + wording.summary(dice, 14),
        keep=tail,
        kind="summary+tail" if tail else "summary",
    )


SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        Sample(
            "healthy",
            "Healthy 200k session",
            "Fifteen requests to a coding agent. It ends near 60 % of its window and nothing is ever compacted.",
            _healthy,
        ),
        Sample(
            "timing-gap",
            "Timing gap: 140k seen, 180k there",
            "A tool result arrives between two counts. The last count is 140,000, the next request has 180,018 tokens: "
            "only the estimate catches the compaction.",
            _gap,
        ),
        Sample(
            "small-window",
            "8k window, 40,000-character result",
            "One access log is far too large for the window: the call fails and a mechanical summary takes over.",
            _small_window,
        ),
        Sample(
            "unpersisted-loop",
            "Loop: the summary is not persisted",
            "228,967 → 8,756 → 231,400 → …: every compaction works for one call, then the whole history is back.",
            _loop,
        ),
        Sample(
            "long-coding",
            "Long coding session, 3 compactions",
            "About 150 calls in a 200k window, compacted three times, once with its last messages kept.",
            _long_coding,
        ),
    )
}
