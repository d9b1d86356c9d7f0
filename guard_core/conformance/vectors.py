"""Vector files as typed values; a file without the shape of its format raises VectorError with a plain sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from guard_core.errors import GuardError
from guard_core.policies.contextguard.settings import Settings, profile_settings

T = TypeVar("T")

# Sizes in vectors become real text here, so they are bounded: larger ones are refused, not tried.
Size = Annotated[int, msgspec.Meta(ge=0, le=20_000_000)]
Tokens = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
Rows = list[list[Any]]

# Columns of the vectors, and the columns of a trace that they are compared with.
COLUMNS = {
    "n_built": "contents_built",
    "h_built": "heuristic_built",
    "n_injected": "contents_decided",
    "h_decision": "heuristic_decided",
    "real_loaded": "real_loaded",
    "last_h_loaded": "last_heuristic_loaded",
    "correction": "correction",
    "calibrated": "calibrated",
    "decision_tokens": "decision_tokens",
    "threshold": "threshold",
    "n_after": "contents_sent",
    "h_after": "heuristic_sent",
    "h_persisted": "heuristic_sent",
    "real_for_llm": "modelled_prompt_tokens",
    "watermark": "watermark",
    "summary_bytes": "summary_bytes",
}

LARGEST_FILE = 64 * 1024 * 1024  # bytes
LARGEST_TEXT = 512 * 1024 * 1024  # bytes of text that one file may ask for


class VectorError(GuardError):
    """A file that is not a vector file, or not a whole one."""


class Constants(msgspec.Struct, frozen=True):
    """The constants of one run; the profile's name is only a label."""

    default_factor: Ratio
    max_correction: Ratio
    min_correction: Ratio
    large_window: Tokens
    large_window_inclusive: bool
    large_buffer: Tokens
    small_buffer_ratio: Ratio
    count_tool_definitions: bool
    count_inline_data: bool
    threshold_max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000)]
    sliding_max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000)]
    summary_end_marker_dash: str

    def settings(self, *, sliding: bool = False, **changes: Any) -> dict[str, Any]:
        """These constants as settings of a policy."""
        return {
            "profile": "current",
            "default_factor": self.default_factor,
            "floor": self.min_correction,
            "cap": self.max_correction,
            "large_window": self.large_window,
            "large_inclusive": self.large_window_inclusive,
            "large_buffer": self.large_buffer,
            "small_ratio": self.small_buffer_ratio,
            "count_tools": self.count_tool_definitions,
            "count_inline": self.count_inline_data,
            "count_metadata": self.count_inline_data,
            "max_passes": self.sliding_max_attempts if sliding else self.threshold_max_attempts,
            "marker_dash": self.summary_end_marker_dash,
            **changes,
        }


class VectorTurn(msgspec.Struct, frozen=True):
    """One turn of a trace's input."""

    user_bytes: Size
    model_bytes: Size
    tools: list[tuple[str, Size]] | None = None
    sequential: bool | None = None
    inline: list[tuple[str, Size]] | None = None


class TraceInput(msgspec.Struct, frozen=True):
    """One independent input of a trace."""

    window: Tokens
    system_bytes: Size
    system_tokens: Tokens
    usage_metadata: bool
    token_ratio: Ratio
    summary_bytes: Size
    turns: list[VectorTurn]
    events: list[tuple[str, str, Tokens]]
    tool_defs: list[tuple[str, Size, Size]] | None = None
    tool_defs_tokens: Tokens | None = None
    tool_defs_full: list[dict[str, Any]] | None = None


class TraceOutput(msgspec.Struct, frozen=True):
    """What the original did with one input."""

    buffer: Tokens
    threshold: Tokens
    llm_compactions: Tokens
    result: dict[str, Any]
    steps: Rows


class TraceRun(msgspec.Struct, frozen=True):
    """The outputs of one profile."""

    profile: str
    constants: Constants
    simulations: list[TraceOutput]


class TraceFile(msgspec.Struct, frozen=True):
    """A file of the format contextguard-trace/1."""

    name: str
    step_fields: list[str]
    attempt_fields: list[str]
    simulations: list[TraceInput]
    runs: list[TraceRun]
    upstream_asserts: dict[str, Any] = {}


class ScriptInput(msgspec.Struct, frozen=True):
    """The input of a scripted run."""

    strategy: str
    window: Tokens
    llm_script: list[dict[str, Any]]
    token_ratio: Ratio
    usage_metadata: bool
    system_bytes: Size
    events: Rows
    event_tokens: list[Tokens]
    max_turns: Tokens = 0
    user_content: str = ""


class ScriptRun(msgspec.Struct, frozen=True):
    """The output of one profile."""

    profile: str
    constants: Constants
    buffer: Tokens
    threshold: Tokens
    steps: Rows


class ScriptFile(msgspec.Struct, frozen=True):
    """A file of the format contextguard-scripted/1."""

    name: str
    step_fields: list[str]
    attempt_fields: list[str]
    simulation: ScriptInput
    runs: list[ScriptRun]


class FunctionFile(msgspec.Struct, frozen=True):
    """A file of the format contextguard-function/1; timing gaps have one `case`, the others `cases` by profile."""

    function: str
    cases: dict[str, Any] | None = None
    case: dict[str, Any] | None = None
    constants: dict[str, Constants] | None = None


class SingleshotRow(msgspec.Struct, frozen=True):
    """One row of a single-shot file."""

    profile: str
    table: str
    strategy: str
    scenario: str
    conversation: int | str
    window: Tokens
    contents_before: Tokens
    contents_after: Tokens
    tokens_before: Tokens
    tokens_after: Tokens
    summary_bytes: Size
    fits: bool
    passes: Rows
    param: Tokens | None = None
    old_messages: Tokens | None = None
    recent_messages: Tokens | None = None
    summarized: bool | None = None
    attempts: Tokens | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None


class SingleshotFile(msgspec.Struct, frozen=True):
    """A file of the format contextguard-singleshot/1."""

    profiles: dict[str, dict[str, Any]]
    pass_fields: dict[str, list[str]]
    conversations: dict[str, list[tuple[str, str, Tokens]]]
    rows: list[SingleshotRow]


class _VectorHead(msgspec.Struct, frozen=True):
    format: str


def load(path: Path) -> tuple[str, bytes]:
    """The format and the bytes of a vector file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise VectorError(f"it is larger than {LARGEST_FILE:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise VectorError(error.strerror or "it cannot be read") from error
    return parse(data, _VectorHead).format, data


def parse(data: bytes, kind: type[T]) -> T:
    """The bytes as a typed value."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise VectorError(f"it is not a whole vector file: {error}") from error


def convert(value: Any, kind: type[T], where: str) -> T:
    """A part of a vector file as a typed value."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise VectorError(f"{where}: {error}") from error


def settings_of(constants: Constants, **changes: Any) -> Settings:
    """The constants as a policy's settings."""
    return profile_settings(**constants.settings(**changes))


def check_text(size: int) -> None:
    """Refuse a file whose sizes add up to more text than anyone needs."""
    if size > LARGEST_TEXT:
        raise VectorError(f"its sizes ask for {size:,} bytes of text, more than {LARGEST_TEXT:,}")
