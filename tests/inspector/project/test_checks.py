"""What a person is told before the server starts."""

from __future__ import annotations

import pytest

from inspector.project.checks import loopback_only


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_this_machine_alone_needs_no_login(bind, settings):
    settings.BIND = bind
    assert loopback_only(None) == []


def test_others_may_not_reach_it_without_a_login(settings, monkeypatch):
    settings.BIND = "0.0.0.0"
    assert [error.id for error in loopback_only(None)] == ["inspector.E001"]
    monkeypatch.setenv("LOGIN_PROXY", "1")
    assert loopback_only(None) == []
