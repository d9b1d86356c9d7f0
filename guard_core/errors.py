"""Every error the engine raises on purpose.

GuardError
├── RecordingError            a file cannot be read as a session
│   ├── UnknownFormat         no format recognises it
│   ├── DamagedRecording      it is broken at a line and column
│   └── LimitExceeded         it is larger, deeper or longer than allowed
├── SettingError              a setting has no such name or no such value
├── UnknownName               no policy, profile, scenario or format has this name
├── OtherVersion             stored bytes were written by another version of the engine
├── SummaryFailed             the summariser gave an error instead of a summary
└── TokenizerUnavailable      the vocabulary of a tokenizer cannot be loaded
"""


class GuardError(Exception):
    """Base of all errors below; its text is one plain sentence for a person."""


def place_words(line: int | None, column: int | None) -> str:
    """How a sentence about a place in a file begins; "" where there is no such place. Both count from 1."""
    if line is None:
        return ""
    return f"line {line}: " if column is None else f"line {line}, column {column}: "


class RecordingError(GuardError):
    """A recording cannot be read. `line` and `column` count from 1; None where there is no such place."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.reason = message
        self.line = line
        self.column = column
        super().__init__(f"{place_words(line, column)}{message}")


class UnknownFormat(RecordingError):
    """No recording format recognises the bytes."""


class DamagedRecording(RecordingError):
    """The bytes of a known format are broken: encoding, JSON, nesting, a missing field."""


class LimitExceeded(RecordingError):
    """A documented limit was passed; the message names the limit and the value found."""


class SettingError(GuardError):
    """A setting that does not exist, or a value outside what is allowed."""


class UnknownName(GuardError):
    """A policy, profile, scenario or format that is not registered; the message lists what is."""


class OtherVersion(GuardError):
    """Stored columns of another version; they can be made again from the session's events."""


class SummaryFailed(GuardError):
    """The summariser failed; a policy decides what happens then."""


class TokenizerUnavailable(GuardError):
    """A tokenizer's vocabulary file is missing or damaged."""
