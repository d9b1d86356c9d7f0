"""What programs write of comments at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from guard_core.recordings.formats import native
from inspector.models import Comment, Session
from tests.big_sessions import big_session
from tests.inspector.api.test_comments import say


@pytest.mark.django_db(transaction=True)
def test_one_token_that_is_sent_at_the_same_moment_is_stored_once(client, bring):
    bring(native.write(big_session(3, 0)))
    row = Session.unscoped.get()

    def send(_: int) -> int:
        try:
            return say(client.__class__(client.handler), row, token="same").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(send, range(8))) <= {200, 201}
    assert Comment.unscoped.count() == 1
