"""The answer of a sweep as a report of tables."""

from __future__ import annotations

from guard_core import __version__
from guard_core.report import Table, TableReport, sealed
from guard_core.sweep import words
from inspector.pages.sweep import presenter
from inspector.pages.sweep.runs import EndedSweep

MOST_ROWS = 500  # settings that are listed: what a browser shows without effort
MODELLED = "All figures are modelled, by a replay of the recorded messages under each setting."


def report_of(answer: EndedSweep, level: str) -> TableReport:
    """The recommendation with its evidence, the cross-over, every setting, and how the recommended one does."""
    header, *cells = presenter.sheet(answer)
    recommended = presenter.recommendation(answer)
    result = answer.result
    best = result.cells[result.recommended]
    titles = [
        (title or "untitled") if level == "names" else f"session {at}"
        for at, (_, title) in enumerate(answer.sessions, 1)
    ]
    every = Table(
        heading="Settings",
        heads=tuple(str(name).replace("_", " ") for name in header),
        numeric=tuple(place for place in range(len(result.axes), len(header) - 2)),
        rows=tuple(tuple(line) for line in cells[:MOST_ROWS]),
        marked=tuple(at for at in range(min(len(cells), MOST_ROWS)) if at == result.recommended),
        most=len(cells),
        note=f"The recommended setting is marked: {words(best.values)}.",
    )
    per_session = Table(
        heading="The recommended setting in each session",
        heads=("session", "model calls", "overflows", "compactions", "peak", "window"),
        numeric=(1, 2, 3, 4, 5),
        rows=tuple(
            (titles[at], result.steps[at], figure.overflow_steps, figure.compactions, figure.peak, best.windows[at])
            for at, figure in enumerate(best.figures[:MOST_ROWS])
        ),
        most=len(best.figures),
    )
    sentences = (recommended["sentence"], recommended["equal"], *recommended["folds"], recommended["not_checked"])
    return sealed(
        TableReport(
            engine_version=__version__,
            level=level,
            kind="sweep",
            about=answer.question.words(),
            sentences=tuple(filter(None, sentences)),
            sessions=(),
            tables=(every, per_session),
            assumptions=(MODELLED, recommended["order"]),
        )
    )
