"""Settings that several policies publish alike."""

from __future__ import annotations

from guard_core.policies.settings import COUNT, SHARE, Setting

UNLESS_RECORDED = "no effect on summaries of recorded sizes"
SUMMARY_TOKENS = 4_000  # ours: nominal size of a summary where the system sets no limit


def summary_budget(system: str = "", *, label: str = "Summary budget", tokens: int = SUMMARY_TOKENS) -> Setting:
    """The size that shares of the summary budget refer to; `system` is known to have no limit of its own."""
    unlimited = f" ({system} has no limit)" if system else ""
    help_text = f"the size that a share of the summary budget refers to{unlimited}; {UNLESS_RECORDED}"
    return Setting("summary_budget", label, COUNT, tokens, help_text, "ours", unit="tokens", least=1)


def summary_limit(tokens: int, source: str) -> Setting:
    """The summary budget of a system that limits its summariser."""
    return Setting(
        "summary_budget",
        "Summary budget",
        COUNT,
        tokens,
        f"maximum output tokens of the summariser; {UNLESS_RECORDED}",
        source,
        unit="tokens",
        least=1,
    )


def trigger_share(share: float, source: str) -> Setting:
    """The share of the window at which a policy compacts."""
    return Setting(
        "share",
        "Share of the window",
        SHARE,
        share,
        "compacts once the count reaches this share of the window",
        source,
        main=True,
        sweep=(share, 0.7, 0.5),
    )


def sliding_share(share: float, source: str) -> Setting:
    """The share of the messages that goes, which is also the share of the window that is to be free then."""
    return Setting(
        "sliding_window_percentage",
        "Share that goes",
        SHARE,
        share,
        (
            "share of the messages summarised first, with a tenth added to it; the rest, as a share of "
            "the window, is the target"
        ),
        source,
        main=True,
        sweep=(0.3, 0.5),
    )


def reserve_tokens(tokens: int, help_text: str, source: str, sweep: tuple[int, ...]) -> Setting:
    """What pi and its descendants keep free of the window."""
    return Setting("reserve_tokens", "Reserve", COUNT, tokens, help_text, source, unit="tokens", main=True, sweep=sweep)


def keep_recent(source: str, *, others: str = "") -> Setting:
    """The tokens of the newest messages that pi and its descendants keep; `others`: what else is said of them."""
    return Setting(
        "keep_recent_tokens",
        "Keep recent",
        COUNT,
        20_000,
        f"budget for the newest messages, which are kept{others}",
        source,
        unit="tokens",
        main=True,
    )


def trigger_reserve(tokens: int, help_text: str, source: str, sweep: tuple[int, ...]) -> Setting:
    """The tokens that a policy leaves free: it compacts where no more than these are left."""
    return Setting("reserved", "Reserved", COUNT, tokens, help_text, source, unit="tokens", main=True, sweep=sweep)
