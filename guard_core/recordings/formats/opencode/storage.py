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

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.recordings.reading import strict_json
from guard_core.recordings.reading.limits import Limits

NAME = "storage"
DEEPEST = Limits().depth - 4  # levels of a piece; an export has four around a part
LEFT_OUT = b"{}"  # in the place of a damaged piece: the reading notes it
_SESSION = re.compile(r"session/(?!share/)[^/]+/(ses_[^/]*)\.json")  # session/share: the keys of shared sessions
_MESSAGE = re.compile(r"(?:session/)?message/(ses_[^/]+)/(msg_[^/]*)\.json")
_PART = re.compile(r"(?:session/)?part/(?:ses_[^/]+/)?(msg_[^/]+)/(prt_[^/]*)\.json")


def is_storage(folder: Path) -> bool:
    """Is this the folder in which OpenCode kept its sessions?"""
    places = (path.relative_to(folder).as_posix() for path in folder.glob("session/*/ses_*.json"))
    return folder.name == NAME and any(map(_SESSION.fullmatch, places))


def storages_in(paths: Iterable[str]) -> dict[str, list[str]]:
    """The storage folders among paths with `/` in them, each with the paths of all files in it."""
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        parent, folder, _ = f"/{path}".rpartition(f"/{NAME}/")
        if folder:
            inside[f"{parent}/{NAME}"[1:]].append(path)
    return {
        folder: files
        for folder, files in inside.items()
        if any(_SESSION.fullmatch(path[len(folder) + 1 :]) for path in files)
    }


class Storage:
    """The sessions of a storage folder, of whose files each has its place in there: the places of the files that name
    the sessions, those of the pieces of no session, and each session as an export."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._pieces: defaultdict[str, list[str]] = defaultdict(list)  # of a session or a message
        for place in sorted(files, key=lambda place: place.rpartition("/")[2]):  # ids tell the order of their making
            if match := _MESSAGE.fullmatch(place) or _PART.fullmatch(place):
                self._pieces[match[1]].append(place)
        self.sessions = sorted(place for place in files if _SESSION.fullmatch(place))
        owners = {_id(place) for place in self.sessions}
        owners |= {_id(message) for owner in owners for message in self._pieces.get(owner, ())}
        self.loose = [place for owner, pieces in self._pieces.items() if owner not in owners for place in pieces]

    @classmethod
    def of(cls, folder: Path) -> Storage:
        """All JSON files of a folder, by their path in it."""
        return cls({path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")})

    def export(self, session: str, leave: Callable[[str], object] | None = None) -> bytes:
        """The session that one of `sessions` names. `leave` gets the name of each damaged piece that is left out;
        without it such a piece raises DamagedRecording with its name."""
        messages = []
        for message in self._pieces.get(_id(session), ()):
            info = self._read(message, leave)
            parts = b",".join(self._read(part, leave) for part in self._pieces.get(_id(message), ()))
            messages.append(b'{"info":%b,"parts":[%b]}' % (info, parts))
        return b'{"info":%b,"messages":[%b]}' % (self._read(session, leave), b",".join(messages))

    def _read(self, place: str, leave: Callable[[str], object] | None) -> bytes:
        """The JSON value of a file, unchanged; only that it is one is checked, the reading checks the rest."""
        raw = self._files[place].read_bytes()
        if not (damage := _damage(raw)):
            return raw.strip()
        reason = f"the file {'/'.join(place.split('/')[-2:])} {damage}"
        if leave is None:
            raise DamagedRecording(reason)
        leave(reason)
        return LEFT_OUT


def _damage(raw: bytes) -> str:
    """What keeps a piece out of its session; "" where nothing does."""
    if strict_json.is_deeper(raw, DEEPEST):
        return "is nested too deeply"
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "holds no JSON value"
    return ""


def _id(place: str) -> str:
    """The id in the name of a file."""
    return place.rpartition("/")[2].removesuffix(".json")
