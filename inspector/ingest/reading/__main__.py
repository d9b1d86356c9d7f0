"""The process of a reader: `python -m inspector.ingest.reading OPTIONS`, reader.Options as JSON.

It writes messages to its output."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback

from inspector.project.lifeline import end_with_parent

end_with_parent()  # first of all: the worker may be killed while this process still starts
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the server, which ends its worker, which ends its readers
gc.set_threshold(1_000_000, 20, 100)  # a long file is hundreds of thousands of values that hold no cycles

import msgspec  # noqa: E402

from guard_core.errors import RecordingError  # noqa: E402
from inspector.ingest.reading.messages import ReaderMessage, ReadingFailed, write  # noqa: E402
from inspector.ingest.reading.reader import ReadingOptions, read_here  # noqa: E402

TRACE_CHARS = 4_000  # of a traceback, for the log


def main() -> int:
    """Read the file of the options in the first argument; write messages to standard output. Returns the exit code."""
    options = msgspec.json.decode(sys.argv[1], type=ReadingOptions)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever a library prints is not a message

        def send(message: ReaderMessage) -> None:
            write(out, message)

        try:
            try:
                read_here(options, send)
            except RecordingError as error:
                send(ReadingFailed(type(error).__name__, error.reason, error.line, error.column))
            except MemoryError:
                send(ReadingFailed("memory"))
            except BrokenPipeError:
                raise
            except OSError as error:
                send(ReadingFailed("system", error.strerror or str(error)))
            except Exception:
                send(ReadingFailed("mistake", traceback.format_exc()[-TRACE_CHARS:]))
        except BrokenPipeError:  # the other end is closed
            os._exit(1)
    return 0


if __name__ == "__main__":
    atexit.register(gc.freeze)  # what was read is not searched for garbage at the end
    sys.exit(main())
