"""The files of one session in a ZIP archive. Each is read as a recording of its own, whose problems name it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from guard_core.errors import RecordingError
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.zip_entries import ZipEntries


class Bundle:
    """The files in an archive. Use as a context manager. `noting`: what is wrong with its directory is a problem of the
    source; not so while formats are asked whether it is theirs."""

    def __init__(self, source: ByteSource, *, noting: bool = True) -> None:
        self._source = source
        self._stream = source.stream()
        try:
            self._entries = ZipEntries(self._stream, source.size, source.limits)
        except BaseException:
            self._stream.close()
            raise
        if noting and self._entries.damage:
            source.leave_out(self._entries.damage)

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def names(self) -> list[str]:
        """The paths of the files, in the order of the archive."""
        return self._entries.names()

    @contextmanager
    def open(self, name: str) -> Iterator[ByteSource | None]:
        """A file; None where it is empty. What is noted of it, or wrong with it, names it."""
        outer = self._source
        with self._unpacked(name) as content:
            if not content:
                yield None
                return
            try:
                with ByteSource.open(content, strict=outer.strict, limits=outer.limits) as inner:
                    inner.watch, inner.shelve_from = outer.watch, outer.shelve_from
                    yield inner
            except RecordingError as error:
                raise type(error)(f"{_shown(name)}: {error.reason}", line=error.line, column=error.column) from error
        for problem in inner.notes.problems:
            outer.notes.problem(f"{_shown(name)}: {problem.message}", problem.line, problem.column)
        outer.has_left_out |= inner.has_left_out
        outer.notes.mended += inner.notes.mended
        outer.notes.folded += inner.notes.folded
        for kind, count in inner.notes.skipped.items():
            outer.notes.skipped[kind] = outer.notes.skipped.get(kind, 0) + count

    def holds(self, names: Iterable[str], is_its: Callable[[ByteSource], bool]) -> bool:
        """Is one of these files of a kind. A file that is empty or damaged is of none."""
        for name in names:
            with suppress(RecordingError), self.open(name) as inner:
                if inner is not None and is_its(inner):
                    return True
        return False

    @contextmanager
    def _unpacked(self, name: str) -> Iterator[bytes | Path]:
        """The bytes of a file, or a temporary file with them if they would make a large source."""
        blocks, held, size = self._entries.blocks(name), list[bytes](), 0
        for block in blocks:
            held.append(block)
            size += len(block)
            if size >= self._source.shelve_from:
                break
        else:
            yield b"".join(held)
            return
        with tempfile.NamedTemporaryFile(prefix="recording-") as file:
            file.writelines(chain(held, blocks))
            file.flush()
            held.clear()
            yield Path(file.name)


def _shown(name: str) -> str:
    return ascii(name[-80:])[1:-1]
