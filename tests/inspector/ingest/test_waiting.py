"""How long the answer to an upload waits for the files that came with it."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.ingest.waiting import SMALL, settled


@dataclass
class Job:
    """An import, as far as it is waited for: over after some looks."""

    needed: float
    total: int = 100
    looks: int = 0

    @property
    def ended(self) -> bool:
        return self.looks >= self.needed

    def refresh_from_db(self) -> None:
        self.looks += 1


def test_every_small_file_is_waited_for_while_one_after_the_other_ends(settings):
    settings.ANSWER_WAIT_SECONDS = 60
    jobs = [Job(2), Job(1), Job(9, total=SMALL + 1), Job(3)]
    assert [job.ended for job in settled(jobs)] == [True, True, False, True]


def test_after_one_that_does_not_end_in_time_none_is_waited_for(settings):
    settings.ANSWER_WAIT_SECONDS = 0.05
    jobs = [Job(0), Job(float("inf")), Job(1)]
    assert [job.ended for job in settled(jobs)] == [True, False, False]
    assert jobs[2].looks == 0
