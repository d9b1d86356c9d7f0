"""How findings put numbers into sentences: people count steps, messages and compactions from 1, shares in per cent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guard_core.estimation.measurement import Errors
from guard_core.findings.claims import WINDOW_ASSUMED, WINDOW_DOUBTED, WINDOW_FROM_TABLE
from guard_core.plural import counted as counted
from guard_core.sessions import Session
from guard_core.shares import per_cent
from guard_core.windows.models import if_window_is
from guard_core.windows.window_evidence import Status, WindowJudgement

PRECISE_BELOW = 1.1  # shares below this have a decimal: 99.6 % and 100.4 % are not the same
FEW_PREDICTIONS = 3  # ours: of fewer calls an average error says little
LISTED_NUMBERS = 5  # compactions named one by one in a sentence

_WINDOW_ASSUMPTIONS = {
    Status.TABLE: (WINDOW_FROM_TABLE,),
    Status.ASSUMED: (WINDOW_ASSUMED,),
    Status.DOUBTED: (WINDOW_DOUBTED,),
}


def percent(share: float) -> str:
    """A share of 1: "77.5 %", "124 %"; nothing is rounded to the whole, or down to nothing: "under 0.1 %"."""
    return f"{per_cent(share, 1 if share < PRECISE_BELOW else 0)} %"


def at_step(step: int) -> str:
    """A step by the number that people see."""
    return f"step {step + 1:,}"


def steps_words(first: int, last: int) -> str:
    """One step, or a range of them."""
    return at_step(first) if first == last else f"steps {first + 1:,} to {last + 1:,}"


def compactions_words(indices: Sequence[int]) -> str:
    """Compactions by the numbers that people see: "compaction 2", "compactions 1, 2 and 5"."""
    numbers = [f"{index + 1:,}" for index in indices[:LISTED_NUMBERS]]
    more = len(indices) - len(numbers)
    numbers += [f"{more:,} more"] if more else []
    if len(numbers) == 1:
        return f"compaction {numbers[0]}"
    return f"compactions {', '.join(numbers[:-1])} and {numbers[-1]}"


def window_assumptions(window: WindowJudgement) -> tuple[str, ...]:
    """The codes of what a claim about this window rests on."""
    return _WINDOW_ASSUMPTIONS.get(window.status, ())


def totals_words(session: Session) -> str:
    """What the provider counted over all calls of a session, where only that is recorded."""
    total = counted(session.prompt_tokens_total or 0, "prompt token")
    if not session.total_calls:
        return f"{total} over all calls, whose number is not recorded"
    return f"{total} over {counted(session.total_calls, 'call')}, {session.mean_prompt_tokens:,} on average"


def off_words(errors: Errors) -> str:
    """How far off predictions are on average; of few calls, of how many, for their average says little."""
    few = f" ({counted(errors.calls, 'call')})" if errors.calls < FEW_PREDICTIONS else ""
    return f"{100 * errors.mape:.1f} %{few}"


def uncounted_words(uncounted: Mapping[str, int]) -> str:
    """How many calls the provider did not count, as the end of a list in brackets; nothing where it counted each."""
    return f", {uncounted['uncounted']:,} of {counted(uncounted['all_calls'], 'call')} not counted" if uncounted else ""


def trigger_not_recorded(unsaid: int, count: int) -> str:
    """The assumption on who asked for `unsaid` of so many compactions, as a sentence."""
    which = f"{unsaid:,} of them" if unsaid < count else "it" if count == 1 else "them"
    they_are = "it is" if unsaid == 1 else "they are"
    return f"The file does not say what triggered {which}; {they_are} taken as automatic."


def if_window(window: WindowJudgement) -> str:
    """The assumption in words, at the end of a sentence; nothing where the window can be relied on."""
    return if_window_is(window.value) if window.is_unsure else ""
