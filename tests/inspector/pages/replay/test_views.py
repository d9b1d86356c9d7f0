"""What the element that shows nothing but the progress of a replay gets."""

import pytest
from django.urls import reverse

from inspector.pages.replay.views import progress_page
from inspector.replays.choice import Choice
from inspector.replays.messages import POLICIES, REPLAY, Task
from inspector.replays.processes import LongReplay


def test_a_page_that_needs_no_progress_is_loaded_anew_and_not_shown_inside_of_itself(gap, part_of):
    answer = part_of(gap.get_absolute_url(), "replay")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["HX-Refresh"] == "true"


def test_a_part_of_a_page_is_not_loaded_anew(gap, part_of):
    assert "HX-Refresh" not in part_of(gap.get_absolute_url(), "chart")


def test_an_error_is_said(part_of, db):
    assert part_of("/s/00000000-0000-4000-8000-000000000000/", "replay").status_code == 404


@pytest.mark.parametrize(
    ("work", "said", "not_said"),
    [
        (POLICIES, "Comparing all policies takes longer", "This replay"),
        (REPLAY, "This replay takes longer", "Comparing"),
    ],
)
def test_the_wait_for_a_comparison_is_not_called_one_for_a_replay(rf, coding, work, said, not_said):
    waiting = LongReplay(Task(str(coding.pk), Choice(), work), 10)
    request = rf.get(coding.get_absolute_url())
    request.project = coding.project
    text = progress_page(request, waiting).content.decode()
    assert said in text
    assert not_said not in text


def test_a_cancelled_comparison_is_not_called_a_replay(client, coding):
    page = client.get(reverse("replay_cancelled", args=[coding.pk]) + f"?work={POLICIES}").content.decode()
    assert "Comparison cancelled." in page
    assert "Replay cancelled" not in page
