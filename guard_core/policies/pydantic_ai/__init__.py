"""The compaction of Pydantic AI's harness: tool results cleared, a sliding window, a summary, and tiers.

Source of the rules: pydantic-ai-harness 0.62.0, `compaction/`, and scripted runs of it. The library's count is the
provider's of the last request with its answer and the characters / 4 of what follows. All messages between two answers
are one message. Not here: a tokenizer of one's own, pinned messages, capabilities that are loaded later, receipts.
"""

from guard_core.policies.pydantic_ai.clear_tool_results import CLEARING
from guard_core.policies.pydantic_ai.sliding_window import SLIDING
from guard_core.policies.pydantic_ai.summarizing import SUMMARIZING
from guard_core.policies.pydantic_ai.tiered import TIERED

KINDS = (CLEARING, SLIDING, SUMMARIZING, TIERED)
