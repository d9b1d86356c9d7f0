"""SWE-agent's history processor: of the observations only the first and the newest stay, others become one line.

Source of the rules: specification of new policies, section 2. Profile `current` is `LastNObservations` of 2025
(`polling`, its wording), `first` the processor of version 0.0.1, which scripted runs have. Observations are the
messages of the user and tool results. Each request is edited anew. Not here: tags that keep or remove an output.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import MODEL, RESULT, SYSTEM, TEXT
from guard_core.events import Event, Part, Role, TextPart, ToolResultPart, value_text
from guard_core.forms import Form, brings_form
from guard_core.forms.base import LogColumns, PartColumns
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.compared import MESSAGES
from guard_core.policies.pieces.editing import ActingSteps, Edited, EditingPolicy
from guard_core.policies.pieces.lists import Sizes
from guard_core.policies.pieces.messages import TOOL, USER, MessageCosts, roles_of
from guard_core.policies.settings import CHOICE, COUNT, PolicyKind, Profile, PublishedResult, RecordedRuns, Setting
from guard_core.view_columns import ViewColumns

CURRENT, FIRST = "current", "first"
# What an omitted observation says around the number of its lines; the misspelling of 0.0.1 is its own.
WORDING = {CURRENT: ("Old environment output: (", " lines omitted)"), FIRST: ("Old output ommitted (", " lines)")}


class SweAgentSettings(msgspec.Struct, frozen=True):
    """Its settings, by name."""

    profile: str = CURRENT
    n: int = 10
    polling: int = 1
    wording: str = CURRENT


@brings_form
class LineCount(Form, frozen=True):
    """Texts of the user and tool results replaced by a line with the number of their lines."""

    kind: ClassVar[str] = "line count"
    wording: str = CURRENT

    @property
    def words(self) -> str:
        return "an old observation was replaced by its number of lines"

    def touches(self, kind: int) -> bool:
        return kind in (TEXT, RESULT)

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        own = self._own(ledger, parts)
        before, after = WORDING[self.wording]
        digits = np.floor(np.log10(np.maximum(parts["lines"], 1))).astype(np.int64) + 1
        size = len(before + after) + digits
        ascii_sizes = dict.fromkeys(("chars", "bytes", "utf16"), size)
        quoted = dict.fromkeys(("json_chars", "repr_chars"), size + 2)
        heuristic = parts["name_chars"] // 4 + size // 4
        plain = {"non_ascii": 0, "wide": 0, "lines": 1, "heuristic": heuristic}
        new: dict[str, Any] = {**ascii_sizes, **quoted, **plain}
        return {**parts, **{name: np.where(own, value, parts[name]) for name, value in new.items()}}

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        return self._own(ledger, old)  # the line may be as long as the text that it replaces

    def _own(self, ledger: LogColumns, parts: PartColumns) -> NDArray[np.bool_]:
        """The texts of the user and the tool results."""
        flags = ledger.events["flags"][parts["event"]]
        return np.asarray(np.isin(parts["kind"], (TEXT, RESULT)) & ((flags & (MODEL | SYSTEM)) == 0))

    def message(self, event: Event) -> Event:
        if event.role is not Role.USER:
            return event
        parts = tuple(map(self._part, event.parts))
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)

    def _part(self, part: Part) -> Part:
        """Pictures, and what is no text of an observation, stay as they are."""
        if isinstance(part, TextPart):
            return msgspec.structs.replace(part, text=self._text(part.text))
        if isinstance(part, ToolResultPart):
            return msgspec.structs.replace(part, content=self._text(value_text(part.content)))
        return part

    def _text(self, text: str) -> str:
        before, after = WORDING[self.wording]
        return f"{before}{len(text.splitlines())}{after}"


OBSERVATIONS = MessageCosts("observations", lambda ledger, parts: _is_observation(ledger), lambda message: 1)


def _is_observation(ledger: Ledger) -> Ints:
    return np.isin(roles_of(ledger), (USER, TOOL)).astype(np.int64)


class LastObservations(EditingPolicy):
    """The policy; see the module. The number that is compared is that of the observations."""

    name: ClassVar[str] = "sweagent-last-n"
    settings: SweAgentSettings

    @property
    def compares(self) -> str:
        return MESSAGES

    def costs(self) -> MessageCosts:
        return OBSERVATIONS

    def limit(self, window: int) -> int:
        return self.settings.n + 1

    def counted(self, sizes: Sizes) -> Ints:
        return sizes.whole

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return np.asarray(self._omitted(counted) > 1)

    def _omitted(self, counted: Any) -> Any:
        """How many of the oldest observations are omitted, the first one counted, which stays."""
        return counted // self.settings.polling * self.settings.polling - self.settings.n

    def edited(self, steps: ActingSteps) -> Edited:
        ledger = steps.ledger
        if "observations" not in ledger.derived:
            ledger.derived["observations"] = np.flatnonzero(_is_observation(ledger))
        places: Ints = ledger.derived["observations"]
        first, last = places[1], places[self._omitted(steps.counted) - 1]
        form = LineCount(wording=self.settings.wording).name
        changes = ledger.first_changed(int(first), form) <= last
        spans = ((0, np.where(changes, first, last + 1)), (first, np.where(changes, last + 1, 0)), (last + 1, steps.at))
        return Edited(ViewColumns.spans(*spans, forms=("", form, "")))


# Saved prompt tokens with 10 observations kept, SWE-bench Verified, published and as `outcomes.masking` predicts them.
_PUBLISHED = (
    ("Qwen3-Coder 480B", 57.9, 59.1),
    ("Qwen3 32B", 51.3, 56.1),
    ("Qwen3 32B, thinking", 31.6, 35.2),
    ("Gemini 2.5 Flash", 77.5, 64.5),
    ("Gemini 2.5 Flash, thinking", 69.4, 61.9),
)
_PREDICTED = "arXiv 2508.21433, table of instance costs; ours by `python -m guard_core masking`"
_SOURCE = "specification of new policies, section 2; SWE-agent, history_processors.py"
KIND = PolicyKind(
    LastObservations.name,
    "SWE-agent (last n observations)",
    "In every request, replaces all observations except the first and the newest with one line each.",
    lambda **values: LastObservations(SweAgentSettings(**values)),
    (
        Setting(
            "n",
            "Observations kept",
            COUNT,
            10,
            "newest observations that stay, in addition to the first; the library has no default",
            _SOURCE,
            unit="observations",
            least=1,
            main=True,
            sweep=(5, 10, 20),
        ),
        Setting(
            "polling",
            "Polling",
            COUNT,
            1,
            (
                "the number that stays grows by up to this before older ones are omitted, which keeps the "
                "cache valid longer"
            ),
            _SOURCE,
            unit="observations",
            least=1,
        ),
        Setting(
            "wording",
            "Wording",
            CHOICE,
            CURRENT,
            "what replaces an observation",
            _SOURCE,
            choices=(CURRENT, FIRST),
            profiles={FIRST: FIRST},
        ),
    ),
    (Profile(CURRENT, "2025: with polling"), Profile(FIRST, "version 0.0.1")),
    summarises=False,
    judged_by=RecordedRuns("sweagent", "last_n_observations", settings={"profile": FIRST}),
    results=tuple(
        PublishedResult(
            model,
            f"It saved {published} % of all prompt tokens. From the turns of the runs without it alone, "
            f"{predicted} % is predicted: {predicted - published:+.1f} points, for the turns changed.",
            _PREDICTED,
        )
        for model, published, predicted in _PUBLISHED
    ),
)
