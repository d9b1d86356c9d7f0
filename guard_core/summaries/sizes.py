"""Size models: summaries of which only the length is known, for replays and sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from guard_core import defaults
from guard_core.errors import SettingError, SummaryFailed
from guard_core.ledger import Ledger
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.views import Inserted

ALLOWED = "recorded, fixed:BYTES, share:low, share:nominal, share:high or mechanical"


@dataclass(frozen=True)
class FixedSummaries:
    """Every summary has `size` bytes."""

    size: int

    @property
    def name(self) -> str:
        return f"fixed:{self.size}"

    def summarise(self, request: SummaryRequest) -> Summary:
        return Summary(self.size)


@dataclass(frozen=True)
class ShareSummaries:
    """Every summary fills a share of its token budget: `level` is low, nominal or high (defaults.SUMMARY_SHARES)."""

    level: str

    @property
    def name(self) -> str:
        return f"share:{self.level}"

    def summarise(self, request: SummaryRequest) -> Summary:
        return Summary(self.size(request.output_tokens))

    def size(self, output_tokens: int) -> int:
        """Bytes of a summary whose budget is `output_tokens`."""
        return int(output_tokens * defaults.SUMMARY_SHARES[self.level]) * defaults.BYTES_PER_TOKEN


@dataclass(frozen=True)
class RecordedSummaries:
    """The n-th summary is as long as the n-th recorded one; after the last recorded one, as long as that."""

    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        return "recorded"

    def summarise(self, request: SummaryRequest) -> Summary:
        return Summary(self.sizes[min(request.call, len(self.sizes) - 1)])

    @classmethod
    def of(cls, ledger: Ledger) -> RecordedSummaries | ShareSummaries:
        """The sizes that a recording holds, without results that its compactions left changed and without edits of the
        history; a nominal share of the budget where it holds none."""
        sizes = []
        for epoch, base in enumerate(ledger.bases):
            if base.is_edit:
                continue
            changed = ledger.replaced_results(epoch)
            inserted = [segment.index for segment in base.view if isinstance(segment, Inserted)]
            size = sum(base.costs["bytes"][index] for index in inserted if index not in changed)
            sizes += [size] if size else []
        return cls(tuple(sizes)) if sizes else ShareSummaries("nominal")


@dataclass(frozen=True)
class ScriptedSummaries:
    """Replies in order, the last one repeats: a size in bytes, 0 for no text, None for an error."""

    replies: tuple[int | None, ...]
    error: str = "the summariser gave an error"

    @property
    def name(self) -> str:
        return "scripted:" + ",".join("error" if size is None else str(size) for size in self.replies)

    def summarise(self, request: SummaryRequest) -> Summary:
        size = self.replies[min(request.call, len(self.replies) - 1)]
        if size is None:
            raise SummaryFailed(self.error)
        return Summary(size)


@dataclass(frozen=True)
class NoSummaries:
    """A summariser that never answers, so that every summary is the mechanical one."""

    @property
    def name(self) -> str:
        return "mechanical"

    def summarise(self, request: SummaryRequest) -> Summary:
        return Summary(0)


SizeModel = FixedSummaries | ShareSummaries | RecordedSummaries | ScriptedSummaries | NoSummaries


def get_summarizer(text: str, ledger: Ledger) -> SizeModel:
    """The size model that a setting names: "fixed:BYTES", "share:LEVEL", "recorded" or "mechanical".

    Raises SettingError with what is allowed.
    """
    kind, _, value = text.strip().partition(":")
    if kind == "fixed" and value.isascii() and value.isdigit() and len(value) < 10:
        return FixedSummaries(int(value))
    if kind == "share" and value in defaults.SUMMARY_SHARES:
        return ShareSummaries(value)
    if kind == "recorded" and not value:
        return RecordedSummaries.of(ledger)
    if kind == "mechanical" and not value:
        return NoSummaries()
    raise SettingError(f"the summary is {ALLOWED}, not {text[:40]!r}")
