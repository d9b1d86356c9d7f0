"""The settings of Hermes, the numbers that follow from a window, and the state that is remembered from step to step."""

from __future__ import annotations

import msgspec

from guard_core.policies.settings import COUNT, SHARE, SWITCH, Profile, Setting
from guard_core.views import View

SMALL_WINDOW = 512_000  # tokens; below it the share is raised (specification of policies, section 1.2)
FULL_WINDOW_SHARE = 0.85  # of the window, where the floor leaves none of it (section 1.2, the rows of 32k and 64k)
LEAST_RATIO, MOST_RATIO = 0.10, 0.80  # of the tail's budget (section 1.1)
LEAST_SUMMARY, SUMMARY_SHARE, WINDOW_SHARE = 2_000, 0.20, 0.05  # of a summary's budget (section 1.1)
SOFT_CEILING = 1.5  # times the tail's budget (section 1.1)
LEAST_TAIL = 3  # messages (section 1.1)
LEAN_LEAST, LEAN_MOST, MOST_OF_WINDOW = 10_000, 25_000, 0.2  # tokens, and a share of the window: a lean tail's budget
SEED, BEFORE, CURRENT, LEAN = "seed", "before", "current", "lean"
_IDS = ("id", "call_id", "response_item_id")  # of a call as 0.19.0 stores it
_RESULT_KEYS = ("role", "name", "tool_name", "content", "tool_call_id")  # of a result as 0.19.0 makes it
_SPEC = "specification of policies, section"
_NEW = "specification of new policies, section 1"


class HermesSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens unless the name says otherwise."""

    profile: str
    threshold_percent: float
    small_window_percent: float
    threshold_floor: int
    threshold_cap: int
    reserved_output: int
    target_ratio: float
    lean_share: float
    quoted_chars: int
    protect_first_n: int
    protect_last_n: int
    tail_floor: int
    prune_floor: int
    round_up: bool
    cooldown_seconds: int
    abort_on_failure: bool
    summary_ceiling: int
    summary_frame: int
    call_frame: int
    result_frame: int
    stored: bool

    @property
    def is_seed(self) -> bool:
        """Are the rules those of the seed profile."""
        return self.profile == SEED

    def threshold(self, window: int) -> int:
        """Tokens at which it fires."""
        share = max(self.threshold_percent, self.small_window_percent if window < SMALL_WINDOW else 0.0)
        room = window - self.reserved_output if self.reserved_output < window else window
        tokens = max(int(room * share), self.threshold_floor)
        if not self.is_seed and 0 < room <= tokens:
            tokens = max(1, min(int(room * FULL_WINDOW_SHARE), room - 1))
        return min(tokens, self.threshold_cap) if self.threshold_cap else tokens

    def tail_budget(self, window: int) -> int:
        """Tokens that the tail should have."""
        if self.lean_share:
            lean = min(max(int(window * self.lean_share), LEAN_LEAST), LEAN_MOST)
            return min(lean, int(window * MOST_OF_WINDOW))
        return int(self.threshold(window) * min(max(self.target_ratio, LEAST_RATIO), MOST_RATIO))

    def summary_budget(self, window: int, middle: int) -> int:
        """Tokens that a summary of `middle` tokens is asked to have."""
        most = min(int(window * WINDOW_SHARE), self.summary_ceiling)
        return max(LEAST_SUMMARY, min(int(middle * SUMMARY_SHARE), most))


class HermesMemory(msgspec.Struct, frozen=True):
    """What it remembers.

    The list of messages is `head`, then the log from `kept_from` on. `tokens` is the last count at step `as_of`: 0 not
    known, -1 not yet counted since the last compaction. `real` is the last count above 0. Estimates are those of whole
    requests: `compacted_estimate` just after the last compaction, `fitted_estimate` the largest known to fit.
    `attempts` are the compactions before calls of turn `turn`, `threshold` that of the last decision, `watermark` the
    first event of the tail. `previous_bytes` and `summary_text` are the last summary of the model, `summary_bytes` what
    was put in the place of messages. `cooldown_until` is in milliseconds, -1: none.
    """

    head: View = ()
    kept_from: int = 0
    summary_bytes: int = 0
    previous_bytes: int = 0
    summary_text: str | None = None
    calls: int = 0
    compactions: int = 0
    tokens: int = 0
    as_of: int = -1
    real: int = 0
    awaiting: bool = False
    verifying: bool = False
    ineffective: int = 0
    fallbacks: int = 0
    compacted_estimate: int = 0
    fitted_estimate: int = 0
    cooldown_until: int = -1
    turn: int = -1
    attempts: int = 0
    watermark: int = 0
    summary_role: int = 0
    threshold: int = 0


SETTINGS = (
    Setting(
        "threshold_percent",
        "Threshold share",
        SHARE,
        0.5,
        "share of the window at which it compacts",
        f"{_SPEC} 1.1",
        least=0.01,
        main=True,
        sweep=(0.5, 0.75, 0.8, 0.85, 0.9),
    ),
    Setting(
        "small_window_percent",
        "Share in small windows",
        SHARE,
        0.75,
        "minimum threshold share in windows below 512,000 tokens",
        f"{_SPEC} 1.2",
        profiles={SEED: 0.0},
    ),
    Setting(
        "threshold_floor",
        "Threshold floor",
        COUNT,
        64_000,
        "minimum threshold (0: none)",
        f"{_SPEC} 1.1 and 1.2",
        unit="tokens",
        main=True,
        profiles={SEED: 0},
    ),
    Setting(
        "threshold_cap",
        "Threshold cap",
        COUNT,
        0,
        "maximum threshold (0: none)",
        f"{_SPEC} 1.2",
        unit="tokens",
    ),
    Setting(
        "reserved_output",
        "Reserved output",
        COUNT,
        0,
        "subtracted from the window first (a run of 0.19.0 that asked for 65,536 reserved none)",
        f"{_SPEC} 1.2",
        unit="tokens",
    ),
    Setting(
        "target_ratio",
        "Tail share",
        SHARE,
        0.2,
        "share of the threshold that is kept for the newest messages, 0.1 to 0.8",
        f"{_SPEC} 1.1",
        main=True,
        sweep=(0.1, 0.2, 0.4),
    ),
    Setting(
        "lean_share",
        "Lean tail",
        SHARE,
        0.0,
        (
            "target size of the tail as a share of the window, between 10,000 and 25,000 tokens; replaces the "
            "tail share (0: off)"
        ),
        _NEW,
        profiles={LEAN: 0.025},
    ),
    Setting(
        "quoted_chars",
        "Requests quoted",
        COUNT,
        0,
        (
            "maximum length of the user's removed messages that a summary quotes, newest first, up to 4,000 "
            "of each (0: none)"
        ),
        _NEW,
        unit="characters",
        profiles={LEAN: 24_000},
    ),
    Setting(
        "protect_first_n",
        "First messages",
        COUNT,
        3,
        "messages kept at the beginning (current: in addition to the system prompt, and only at the first compaction)",
        f"{_SPEC} 1.1 and 1.2",
        unit="messages",
        main=True,
    ),
    Setting(
        "protect_last_n",
        "Last messages",
        COUNT,
        20,
        "newest messages that are not pruned (current: limited by the two floors below)",
        f"{_SPEC} 1.1 and 1.2",
        unit="messages",
        main=True,
    ),
    Setting(
        "tail_floor",
        "Tail floor",
        COUNT,
        8,
        "how many of the last messages are kept whatever their size, at most (at least 3)",
        f"{_SPEC} 1.2",
        unit="messages",
        profiles={SEED: LEAST_TAIL},
        not_in=(SEED,),
    ),
    Setting(
        "prune_floor",
        "Prune floor",
        COUNT,
        8,
        "how many of the last messages stay unpruned whatever their size, at most (0: all, as in 0.19.0)",
        f"{_SPEC} 1.2",
        unit="messages",
        profiles={BEFORE: 0},
        not_in=(SEED,),
    ),
    Setting(
        "round_up",
        "Round up",
        SWITCH,
        True,
        "rounds estimates of characters / 4 up (0.19.0 rounds down)",
        f"{_SPEC} 1.2",
        profiles={SEED: False, BEFORE: False},
    ),
    Setting(
        "cooldown_seconds",
        "Cool-down",
        COUNT,
        600,
        "wait after a failed summary, if the recording has times",
        f"{_SPEC} 1.1",
        unit="seconds",
    ),
    Setting(
        "abort_on_failure",
        "Abort on failure",
        SWITCH,
        False,
        "when a summary fails, the messages stay as they are",
        f"{_SPEC} 1.2",
        not_in=(SEED,),
    ),
    Setting(
        "summary_ceiling",
        "Summary ceiling",
        COUNT,
        10_000,
        "length requested of a summary, at most",
        f"{_SPEC} 1.1 and 1.2",
        unit="tokens",
        least=1,
        profiles={SEED: 12_000},
    ),
    Setting(
        "summary_frame",
        "Summary frame",
        COUNT,
        1_719,
        "fixed text around a summary (unknown for the seed version)",
        "scripted runs of 0.19.0",
        unit="bytes",
        profiles={SEED: 0},
    ),
    Setting(
        "call_frame",
        "Call frame",
        COUNT,
        len(str({**dict.fromkeys(_IDS, ""), "type": "function", "function": {"name": "", "arguments": ""}})) + 73,
        "added to the estimate of each call, beyond its name and arguments (the log has no identifiers)",
        "recorded run of 0.19.0: 73 characters of identifiers",
        unit="characters",
    ),
    Setting(
        "result_frame",
        "Result frame",
        COUNT,
        len(str({**dict.fromkeys(_RESULT_KEYS, ""), "role": "tool"})) + 25,
        "added to the estimate of each tool result in a request, beyond its text and without the tool's name",
        "recorded run of 0.19.0: 25 characters of an identifier",
        unit="characters",
    ),
    Setting(
        "stored",
        "Session stored",
        SWITCH,
        False,
        "the session is kept in Hermes' database: each compaction then forgets those before it that had no effect",
        "0.19.0, run: commit_memory_session of run_agent.py",
        not_in=(SEED,),
    ),
)
PROFILES = (
    Profile(
        CURRENT,
        (
            "mid-2026: estimates before every call, keeps a minimum of messages, stops after two compactions "
            "without effect"
        ),
    ),
    Profile(LEAN, "default since August 2026: a tail of at most 25,000 tokens; quotes the user's messages"),
    Profile(BEFORE, "0.19.0, July 2026: rounds estimates down, leaves all of the last messages unpruned"),
    Profile(SEED, "April 2026: the tail has a token budget"),
)
