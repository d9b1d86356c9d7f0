"""OpenCode's folder storage, used until 1.1: every session, message and part a file of its own. Each session is put
together again as `opencode export` writes it, which is a recording.

    storage/session/<project>/<session>.json, message/<session>/<message>.json, part/<message>/<part>.json
    storage/session/info/<session>.json, message/<session>/…, part/<session>/<message>/…       (until 0.6)

What else lies there is nothing of a session; `session/share` of old versions has files of the same names, with the keys
of shared sessions. `static/js/storage.js` makes the same bytes of a folder that is dropped in a browser.
Source: https://github.com/sst/opencode, packages/opencode/src/storage/storage.ts and src/session/index.ts; seen in
0.5.29 and 1.0.152.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from guard_core.errors import DamagedRecording

NAME = "storage"
SHARED = "share"
LEFT_OUT = b"{}"  # in the place of a damaged piece: the reading notes it


def is_storage(folder: Path) -> bool:
    """Is this the folder in which OpenCode kept its sessions?"""
    return folder.name == NAME and any(_sessions(folder))


class Storage:
    """The sessions of a storage folder: the file that names each, and all of it as an export."""

    def __init__(self, folder: Path) -> None:
        self.sessions = list(_sessions(folder))
        self._messages = {path.name: path for path in _folders(folder, "message", "ses_")}
        self._parts = {path.name: path for path in _folders(folder, "part", "msg_")}

    def export(self, session: Path, leave: Callable[[str], object] | None = None) -> bytes:
        """The session that one of `sessions` names. `leave` gets the name of each damaged piece that is left out;
        without it such a piece raises DamagedRecording with its name."""
        messages = _files(self._messages.get(session.stem), "msg_")
        pieces = []
        for message in messages:
            info = _read(message, leave)
            parts = b",".join(_read(path, leave) for path in _files(self._parts.get(message.stem), "prt_"))
            pieces.append(b'{"info":%b,"parts":[%b]}' % (info, parts))
        return b'{"info":%b,"messages":[%b]}' % (_read(session, leave), b",".join(pieces))


def _read(path: Path, leave: Callable[[str], object] | None) -> bytes:
    """The JSON value of a file, unchanged; only that it is one is checked, the reading checks the rest."""
    try:
        return bytes(msgspec.json.decode(path.read_bytes(), type=msgspec.Raw)).strip()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = f"the file {path.parent.name}/{path.name} holds no JSON value"
        if leave is None:
            raise DamagedRecording(reason) from error
        leave(reason)
        return LEFT_OUT


def _files(folder: Path | None, prefix: str) -> list[Path]:
    """Files with ids, in the order of the ids, which is that of their making."""
    return sorted(folder.glob(f"{prefix}*.json")) if folder is not None else []


def _sessions(folder: Path) -> Iterator[Path]:
    """The files that name the sessions."""
    yield from sorted(path for path in folder.glob("session/*/ses_*.json") if path.parent.name != SHARED)


def _folders(folder: Path, kind: str, prefix: str) -> Iterator[Path]:
    """The folders that hold the messages of a session, or the parts of a message, in either layout."""
    for base in (folder / kind, folder / "session" / kind):
        for path in (*base.glob(f"{prefix}*"), *base.glob(f"ses_*/{prefix}*")):
            if path.is_dir():
                yield path
