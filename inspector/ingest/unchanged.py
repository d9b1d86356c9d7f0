"""Sessions that a longer recording has as they are stored: recognised by one digest, and left as they are.

A recording of many sessions that grows is read whole each time, while most of its sessions have long ended. What is
read of such a session is held until it has ended; where its digest is that of a stored one, nothing is counted.
"""

from __future__ import annotations

import hashlib

from inspector.ingest.growth import LEAST_STORED
from inspector.ingest.reading.messages import EventBatch
from inspector.models import Session
from inspector.models.sessions import ENGINE

MOST_HELD = LEAST_STORED  # events; a longer session is compared with the stored one as it is read


class Reading:
    """What is read of one session: its digest, and the batches that are held until that is known.

    `stored` are the sessions that it may be, by their digests.
    """

    def __init__(self, stored: dict[bytes, Session]) -> None:
        self._stored = stored
        self._sum = hashlib.sha256(ENGINE.encode())
        self._held: list[EventBatch] = []
        self._events = 0

    def hold(self, batch: EventBatch) -> list[EventBatch]:
        """Take the next batch; those that are to be stored now."""
        for part in (*batch.keys, batch.lines, batch.timestamps, "\0".join(batch.source_ids).encode()):
            self._sum.update(len(part).to_bytes(8, "little") + part)
        self._held.append(batch)
        self._events += len(batch.keys)
        if self._events > MOST_HELD:
            self._stored = {}
        return [] if self._stored else self.let_go()

    def let_go(self) -> list[EventBatch]:
        """The batches that are held."""
        held, self._held = self._held, []
        return held

    def ended(self, head: bytes) -> bytes:
        """The digest of the session with this head."""
        self._sum.update(head)
        return self._sum.digest()

    def same(self, digest: bytes) -> Session | None:
        """The stored session that is word for word this one; another one that is read is not the same."""
        return self._stored.pop(digest, None)
