"""guard_core: why an LLM agent's context was compacted, what was lost, and what another setting would have done."""

__version__ = "0.1.0"
