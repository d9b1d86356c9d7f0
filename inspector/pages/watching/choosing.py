"""Which folder or file may be watched: one that is there, below the home folder of the person who runs the server.

Other accounts of the machine can reach a page, which can name any path: what lies elsewhere takes the command `watch`,
which runs as the person who types it.
"""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from inspector.models import Project, WatchedPlace
from inspector.watching.files import DATABASES, ENDINGS, is_session

MOST_PLACES = 20  # each is walked every second
MOST_CHARS = 1000  # of a path


class NotWatched(ValueError):
    """Why a path is not watched, in a sentence."""


def choose(project: Project, typed: str) -> WatchedPlace:
    """Watch what was typed. Raises NotWatched."""
    path = checked(typed)
    with transaction.atomic():
        mine = WatchedPlace.objects.of(project)
        known = mine.filter(path=str(path)).first()
        if known is None and mine.count() >= MOST_PLACES:
            raise NotWatched(f"At most {MOST_PLACES} places are watched; stop watching one of them first.")
        return known or mine.create(path=str(path))


def checked(typed: str) -> Path:
    """The place that was typed, absolute and without links. Raises NotWatched."""
    name = typed.strip()
    if not name or "\x00" in name or len(name) > MOST_CHARS:
        raise NotWatched(f"Type the path of a folder or file, of at most {MOST_CHARS:,} characters.")
    home = Path.home().resolve()
    try:
        path = Path(name).expanduser().resolve(strict=True)
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, RuntimeError, ValueError):  # ValueError: half a character, which no path holds
        raise NotWatched(f"There is no folder or file at {name}.") from None
    if home not in path.parents:
        where = (
            "The home folder as a whole is" if path == home else f"{path} is not below the home folder {home}, so it is"
        )
        raise NotWatched(f"{where} not watched from here; the command compaction-inspector watch takes any folder.")
    if not is_folder and not (is_file and is_session(path.name)):
        endings = ", ".join(ending for ending in ENDINGS if ending not in DATABASES[1:])
        raise NotWatched(f"{path} is neither a folder nor a session file ({endings}).")
    if len(str(path)) > MOST_CHARS:
        raise NotWatched(f"The path has more than {MOST_CHARS:,} characters without its links.")
    return path
