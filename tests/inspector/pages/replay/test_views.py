"""What the element that shows nothing but the progress of a replay gets."""


def test_a_page_that_needs_no_progress_is_loaded_anew_and_not_shown_inside_of_itself(gap, part_of):
    answer = part_of(gap.get_absolute_url(), "replay")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["HX-Refresh"] == "true"


def test_a_part_of_a_page_is_not_loaded_anew(gap, part_of):
    assert "HX-Refresh" not in part_of(gap.get_absolute_url(), "chart")


def test_an_error_is_said(part_of, db):
    assert part_of("/s/00000000-0000-4000-8000-000000000000/", "replay").status_code == 404
