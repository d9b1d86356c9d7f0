"""What ends by itself does not stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from inspector.accounts import ending
from inspector.models import default_project
from tests.inspector.people import browser, person

pytestmark = pytest.mark.django_db


def test_a_session_that_has_expired_is_removed_and_another_is_not(team, team_handler):
    for name in ("alice", "bob"):
        browser(team_handler, person(name, default_project()))
    first = Session.objects.order_by("pk").first()
    Session.objects.filter(pk=first.pk).update(expire_date=timezone.now() - timedelta(seconds=1))
    ending.drop_ended()
    assert [row.pk == first.pk for row in Session.objects.all()] == [False]
