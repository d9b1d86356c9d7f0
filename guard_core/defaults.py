"""Every number of the domain, each with its source.

Where sources disagree the number belongs to a profile of ContextGuard: `tail` (commit 5bdd637), `early` (dc1ea47, the
one the design documents describe), `current` (113391a), `fixed` (current with its defects mended).
"""

from __future__ import annotations

BYTES_PER_TOKEN = 4  # ContextGuard's len/4, for every provider

LARGE_WINDOW = 200_000  # tokens from which the buffer is fixed; `early` needs more than that, `current` at least that
LARGE_BUFFER = 20_000  # tokens
SMALL_RATIO = 0.20  # share of a smaller window that is its buffer

DEFAULT_FACTOR = (
    2.5  # correction while no provider count is known: 2.5 in `current`, 2.0 in `early`, 1.5 in document 001
)
EARLY_DEFAULT_FACTOR = 2.0
FACTOR_FLOOR = 1.0  # document 000 part 3: the correction never shrinks the heuristic
FACTOR_CAP = 5.0  # document 000 part 3: one odd turn must not distort the following ones

MAX_PASSES = 3  # `current` and sliding; `early` makes exactly one threshold pass
EARLY_MAX_PASSES = 1
SUMMARISER_SHARE = 0.80  # of the window: what the summariser may be given
OUTPUT_SHARE = 0.50  # of the buffer: how long a summary may be, in tokens
WORDS_PER_TOKEN = 0.75  # for the summariser's limit in words
FALLBACK_EXCERPT = 200  # bytes per text part in the mechanical summary
RECENT_RATIO = 0.20  # `tail` only: share of the window that stays verbatim

MAX_TURNS = 20  # sliding window: messages since the watermark
KEEP_PERCENT = 30  # sliding window: share of max_turns that stays verbatim
MIN_KEEP = 3

EM_DASH = "—"  # in the summary's end marker until commit 716cdce
HYPHEN = "-"

LOOP_LENGTH = 3  # compactions at consecutive steps, none of which gets below the threshold; ours

MIN_WINDOW = 256  # tokens; ours: half of the smallest window in genai-prices 0.2.3
MAX_WINDOW = 100_000_000  # tokens; the largest ever published: LTM-2-mini (magic.dev/blog/100m-token-context-windows)
LARGEST_OFFERED = 10_000_000  # tokens; Llama 4 Scout, the largest window of genai-prices 0.2.3
MOST_TOKENS = 10**15  # of a size typed by hand; ours: it stays exact in a double

WINDOW = 128_000  # ContextGuard's registry for an unknown model

# Size models of summaries: share of the summary's budget that a summary fills. Assumed; no source measures it.
SUMMARY_SHARES = {"low": 0.10, "nominal": 0.30, "high": 1.00}
SUMMARY_BYTES = 120  # the summary of ContextGuard's own simulator

SIMULATED_REPLY = 120  # bytes of filler in the simulator's model text

# The provider's cache, as replays model it: how long it keeps a request, and the least that it keeps. Anthropic's
# documentation of prompt caching: five minutes from the last use, 1,024 tokens for most models; OpenAI's: five to ten
# minutes, 1,024 tokens.
CACHE_SECONDS = 300.0
CACHE_LEAST = 1_024
