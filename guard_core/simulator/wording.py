"""Made-up text that looks like an agent's work: listings, code, test runs, logs, tables, JSON.

Everything here is deterministic: the only source of variety is the small generator `Dice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1

AREAS = ("billing", "catalog", "checkout", "invoices", "ledger", "notices", "orders", "pricing", "search", "tenants")
_NOUNS = (
    "account batch cache client column cursor digest entry filter handler index invoice job key lease limit message "
    "mutex offset order page parser payload policy query queue record retry route schema session slot store tenant "
    "timer token topic update user value version window worker"
)
_VERBS = (
    "apply archive assign build cancel check claim close collect compare copy count create decode delete dispatch "
    "expire fetch filter find flush group import insert join list load lock merge move open parse pick prune publish "
    "queue read refresh release rename render replay reserve resolve restore retry save scan send sort split start "
    "store sync trim update validate verify write"
)
NOUNS, VERBS = tuple(_NOUNS.split(" ")), tuple(_VERBS.split(" "))
PEOPLE = ("amara", "bela", "chen", "dunja", "emeka", "freya", "goran", "hana", "ines", "jonas")


class Dice:
    """A linear congruential generator: the same seed always gives the same text (Knuth's MMIX constants)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._state >> 33) % limit

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, each as likely as the others."""
        return choices[self.below(len(choices))]

    def hexadecimal(self, digits: int) -> str:
        """So many hexadecimal digits."""
        return "".join("0123456789abcdef"[self.below(16)] for _ in range(digits))


def clock(dice: Dice, second: int) -> str:
    """A time stamp some seconds after midnight."""
    hour, rest = divmod(second % 86_400, 3_600)
    return f"2026-03-11T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}.{dice.below(1000):03d}Z"


def path(dice: Dice, area: str | None = None) -> str:
    """The path of a Python file in a made-up project."""
    folder = area or dice.pick(AREAS)
    return (
        f"orchard/{folder}/{dice.pick(NOUNS)}_{dice.pick(('views', 'models', 'tasks', 'service', 'forms', 'api'))}.py"
    )


def listing(dice: Dice, folder: str, lines: int) -> str:
    """A directory listing."""
    rows = [f"total {dice.between(40, 900)}"]
    for _ in range(lines):
        size, name = dice.between(120, 98_000), f"{dice.pick(NOUNS)}_{dice.pick(VERBS)}.py"
        day, hour = dice.between(1, 28), dice.below(24)
        rows.append(
            f"-rw-r--r--  1 deploy deploy {size:>7} Mar {day:>2} {hour:02d}:{dice.below(60):02d} {folder}/{name}"
        )
    return "\n".join(rows)


def source(dice: Dice, lines: int) -> str:
    """Numbered lines of a Python module."""
    written: list[str] = ["from __future__ import annotations", "", "import logging", ""]
    while len(written) < lines:
        written += _function(dice)
    return "\n".join(f"{number:>5}\t{line}" for number, line in enumerate(written[:lines], start=1))


def _function(dice: Dice) -> list[str]:
    verb, noun, other = dice.pick(VERBS), dice.pick(NOUNS), dice.pick(NOUNS)
    body = [
        f'    """{verb.capitalize()} every {noun} whose {other} is due, oldest first."""',
        f"    {other}s = {noun}.{other}_set.filter(state__in=OPEN_STATES).order_by('id')[:{dice.between(10, 900)}]",
        f"    for {other} in {other}s:",
        f"        if {other}.{dice.pick(NOUNS)}_count >= MAX_{dice.pick(NOUNS).upper()}S:",
        f"            logger.warning('{verb} gave up on %s after %d tries', {other}.pk, {other}.tries)",
        "            continue",
        f"        {dice.pick(VERBS)}_{dice.pick(NOUNS)}({other}, deadline=timedelta(minutes={dice.between(2, 90)}))",
        f"    return {{'{noun}': {noun}.pk, '{other}s': len({other}s), 'checksum': '{dice.hexadecimal(8)}'}}",
    ]
    limit = dice.between(3, 60)
    head = f"def {verb}_{noun}({noun}: {noun.capitalize()}, *, {other}_limit: int = {limit}) -> dict[str, int]:"
    return [head, *body[: dice.between(4, 8)], "", ""]


def tests_output(dice: Dice, tests: int, failures: int) -> str:
    """The output of a test run, with a traceback for every failure."""
    area = dice.pick(AREAS)
    rows = [f"collected {tests} items", ""]
    for index in range(min(tests, 60)):
        name = f"test_{dice.pick(VERBS)}_{dice.pick(NOUNS)}"
        rows.append(f"tests/{area}/{name}.py::{name}_{index} {'FAILED' if index < failures else 'PASSED'}")
    for _ in range(failures):
        line, left, right = dice.between(20, 400), dice.between(0, 60), dice.between(61, 99)
        rows += [
            "",
            f"    def test_{dice.pick(VERBS)}_{dice.pick(NOUNS)}(client, tenant):",
            f">       assert {left} == {right}",
        ]
        rows += [f"E       AssertionError: assert {left} == {right}", f"{path(dice, area)}:{line}: AssertionError"]
    rows.append(
        f"==== {failures} failed, {tests - failures} passed in {dice.between(2, 70)}.{dice.below(100):02d}s ===="
    )
    return "\n".join(rows)


def logs(dice: Dice, service: str, lines: int) -> str:
    """Lines of a service's log."""
    second = dice.between(0, 80_000)
    return "\n".join(_log_line(dice, service, second + index * dice.between(0, 3)) for index in range(lines))


def _log_line(dice: Dice, service: str, second: int) -> str:
    level = ("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR")[dice.below(6)]
    pod = f"{service}-{dice.hexadecimal(5)}"
    tail = {
        "ERROR": f"upstream timed out after {dice.between(1, 30)}s request_id={dice.hexadecimal(16)}",
        "WARN": f"pool exhausted size={dice.between(8, 64)} waiting={dice.between(1, 400)}",
        "DEBUG": f"cache miss key={service}:{dice.pick(NOUNS)}:{dice.below(99_999)} ttl={dice.between(5, 900)}",
        "INFO": f"{dice.pick(VERBS)} {dice.pick(NOUNS)} id={dice.below(999_999)} took={dice.between(2, 900)}ms",
    }[level]
    return f"{clock(dice, second)} {level:<5} {pod} {tail}"


def access_log(dice: Dice, chars: int) -> str:
    """An HTTP access log of exactly so many characters."""
    rows: list[str] = []
    size = 0
    while size < chars:
        address = f"10.{dice.below(256)}.{dice.below(256)}.{dice.between(1, 254)}"
        route = f"/{dice.pick(AREAS)}/{dice.pick(NOUNS)}/{dice.below(9_999)}"
        code, sent, millis = dice.pick((200, 200, 200, 201, 304, 404, 502)), dice.below(48_000), dice.between(1, 2_900)
        rows.append(
            f'{address} - - [11/Mar/2026:0{dice.below(10)}:{dice.below(60):02d}] "GET {route}" {code} {sent} {millis}ms'
        )
        size += len(rows[-1]) + 1
    return "\n".join(rows)[:chars]


def pod_table(dice: Dice, pods: int) -> str:
    """A table of pods as a cluster's command line prints it."""
    rows = [f"{'NAMESPACE':<12}{'NAME':<38}{'READY':<8}{'STATUS':<20}{'RESTARTS':<12}AGE"]
    for _ in range(pods):
        name = f"{dice.pick(AREAS)}-{dice.pick(NOUNS)}-{dice.hexadecimal(9)}-{dice.hexadecimal(5)}"
        status = dice.pick(("Running", "Running", "Running", "Pending", "CrashLoopBackOff", "Completed"))
        rows.append(f"{'orchard':<12}{name:<38}{'1/1':<8}{status:<20}{dice.below(40):<12}{dice.between(1, 90)}d")
    return "\n".join(rows)


def pods_json(dice: Dice, pods: int) -> dict[str, Any]:
    """The same as a decoded JSON object."""
    return {"kind": "PodList", "items": [_pod(dice) for _ in range(pods)]}


def _pod(dice: Dice) -> dict[str, Any]:
    name = f"{dice.pick(AREAS)}-{dice.hexadecimal(9)}"
    return {
        "metadata": {"name": name, "uid": dice.hexadecimal(32), "labels": {"app": name, "tier": dice.pick(NOUNS)}},
        "spec": {
            "nodeName": f"node-{dice.between(1, 40)}",
            "containers": [
                {"image": f"registry.local/{name}:{dice.hexadecimal(7)}", "memory": dice.between(64, 4_096)}
            ],
        },
        "status": {"phase": dice.pick(("Running", "Pending", "Failed")), "restartCount": dice.below(90)},
    }


def diff(dice: Dice, file: str, hunks: int) -> str:
    """A unified diff."""
    rows = [f"--- a/{file}", f"+++ b/{file}"]
    for _ in range(hunks):
        at = dice.between(1, 900)
        rows.append(f"@@ -{at},6 +{at},7 @@ def {dice.pick(VERBS)}_{dice.pick(NOUNS)}")
        rows += [f" {line}" for line in _function(dice)[1:3]]
        rows += [f"-    {dice.pick(NOUNS)} = {dice.pick(VERBS)}({dice.below(99)})"]
        rows += [f"+    {dice.pick(NOUNS)} = {dice.pick(VERBS)}(tenant, {dice.below(99)})"]
    return "\n".join(rows)


def matches(dice: Dice, word: str, lines: int) -> str:
    """What a search over the project found."""
    return "\n".join(
        f"{path(dice)}:{dice.between(3, 900)}:    {dice.pick(VERBS)}_{word}({dice.pick(NOUNS)}, {dice.pick(NOUNS)})"
        for _ in range(lines)
    )


def rows_json(dice: Dice, rows: int) -> dict[str, Any]:
    """Rows of a query as a decoded JSON object."""
    records = [
        {
            "id": dice.below(999_999),
            "tenant": dice.pick(PEOPLE),
            "state": dice.pick(("open", "paid", "void")),
            "total_cents": dice.below(9_999_999),
            "created_at": clock(dice, dice.below(86_400)),
        }
        for _ in range(rows)
    ]
    return {"row_count": rows, "rows": records, "elapsed_ms": dice.between(3, 900)}


def remark(dice: Dice) -> str:
    """A sentence or two that a model writes before it calls a tool."""
    area, noun, verb = dice.pick(AREAS), dice.pick(NOUNS), dice.pick(VERBS)
    return dice.pick(
        (
            f"Let me look at how {area} handles the {noun} before I change anything.",
            f"The {noun} is only written in one place. I'll check who else tries to {verb} it.",
            f"That explains the {noun}: {area} may {verb} it twice. Checking the callers next.",
            f"I'll {verb} the {noun} in {area} and run the tests again.",
            f"Two tests still fail in {area}. Both expect the old {noun}, so I'll read them first.",
            "",
        )
    )


def report(dice: Dice, points: int) -> str:
    """A model's answer at the end of a turn."""
    rows = [f"Done. {dice.pick(AREAS).capitalize()} now has its own {dice.pick(NOUNS)}; here is what changed:", ""]
    for _ in range(points):
        rows.append(
            f"- `{path(dice)}`: {dice.pick(VERBS)} the {dice.pick(NOUNS)} before the {dice.pick(NOUNS)} is read, "
            f"because {dice.pick(AREAS)} may {dice.pick(VERBS)} it while a {dice.pick(NOUNS)} is still open."
        )
    rows += [
        "",
        f"All {dice.between(40, 900)} tests pass. Left as it was: the {dice.pick(NOUNS)} in {dice.pick(AREAS)}.",
    ]
    return "\n".join(rows)


def summary(dice: Dice, points: int) -> str:
    """A summary under the four headings that hand-overs use."""
    rows: list[str] = []
    for heading in ("Current State", "Key Information", "Context & Decisions", "Exact Next Steps"):
        rows.append(f"## {heading}")
        for _ in range(points):
            rows.append(
                f"- {dice.pick(AREAS)}: {dice.pick(VERBS)} the {dice.pick(NOUNS)} in `{path(dice)}` "
                f"(line {dice.between(3, 900)}); {dice.pick(PEOPLE)} asked to keep the {dice.pick(NOUNS)} as it is."
            )
        rows.append("")
    return "\n".join(rows).rstrip()
