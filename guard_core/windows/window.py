"""The context window: as typed, how large its buffer is, where the threshold lies, how long a summary may be.

Source of the rules: specification of ContextGuard, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from guard_core import defaults
from guard_core.errors import SettingError
from guard_core.sizes import parse_count, parse_share


@dataclass(frozen=True)
class BufferRule:
    """How a window's buffer is found. `buffer` is "auto", a number of tokens, or a share of the window ("15%")."""

    buffer: str = "auto"
    large_window: int = defaults.LARGE_WINDOW
    large_inclusive: bool = True
    large_buffer: int = defaults.LARGE_BUFFER
    small_ratio: float = defaults.SMALL_RATIO

    def of(self, window: int) -> int:
        """The buffer of a window, both in tokens."""
        if self.buffer.endswith("%"):
            return int(window * (float(self.buffer[:-1]) / 100))
        if self.buffer != "auto":
            return int(self.buffer)
        return self.large_buffer if self.is_large(window) else int(window * self.small_ratio)

    def is_large(self, window: int) -> bool:
        """Does the fixed buffer apply: `early` says above 200,000 tokens, `current` from 200,000 on."""
        return window >= self.large_window if self.large_inclusive else window > self.large_window

    def words(self, window: int) -> str:
        """The rule that gave the buffer, for a decision card."""
        if self.buffer.endswith("%"):
            return f"{self.buffer} of the window"
        if self.buffer != "auto":
            return "set by hand"
        sign = ">=" if self.large_inclusive else ">"
        if self.is_large(window):
            return f"fixed for windows {sign} {self.large_window:,}"
        return f"{self.small_ratio:.0%} of the window, which is not {sign} {self.large_window:,}"


@dataclass(frozen=True)
class WindowLimits:
    """What follows from a window: all in tokens, `words` in words."""

    window: int
    buffer: int
    threshold: int
    output_tokens: int
    words: int


def limits(
    window: int,
    rule: BufferRule,
    output_share: float = defaults.OUTPUT_SHARE,
    words_per_token: float = defaults.WORDS_PER_TOKEN,
) -> WindowLimits:
    """Buffer, threshold and the summary's limits of a window."""
    buffer = rule.of(window)
    output = int(buffer * output_share)
    threshold = window - buffer
    if rule.buffer != "auto":
        threshold = max(0, threshold)  # a buffer set by hand may be larger than the window: then everything compacts
    return WindowLimits(window, buffer, threshold, output, int(output * words_per_token))


def parse_window(text: str) -> int:
    """A window as typed ("200000", "128,000", "200k", "1M") in tokens. Raises SettingError."""
    try:
        tokens = parse_count(text, "a window", 0, defaults.MOST_TOKENS)
    except SettingError as error:
        allowed = "a number of tokens such as 200000, 200k or 1M"
        raise SettingError(f"a window is {allowed}, not {text.strip()[:40]!r}") from error
    if not defaults.MIN_WINDOW <= tokens <= defaults.MAX_WINDOW:
        raise SettingError(f"a window has {defaults.MIN_WINDOW:,} to {defaults.MAX_WINDOW:,} tokens, not {tokens:,}")
    return tokens


def parse_buffer(text: str, what: str = "buffer") -> str:
    """A size as typed: "auto", tokens ("20000", "20k") or a share of the window ("15%"), in its plain form.

    Raises SettingError.
    """
    plain = text.strip()
    try:
        if plain == "auto":
            return plain
        return (
            parse_share(plain, what) if plain.endswith("%") else str(parse_count(plain, what, 0, defaults.MOST_TOKENS))
        )
    except SettingError as error:
        raise SettingError(
            f"{what} is auto, a number of tokens or a share of the window such as 15%, not {text[:40]!r}"
        ) from error
