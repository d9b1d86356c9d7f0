"""LlamaIndex's memories: the buffer sends the newest messages that fit, the memory flushes the oldest ones, the summary
buffer summarises them.

Source of the rules: llama-index-core 0.14.25, its modules `memory/chat_memory_buffer.py`, `memory/memory.py` and
`memory/chat_summary_memory_buffer.py`, and scripted runs of them.
"""

from guard_core.policies.llama_index import buffer, memory, summary

KINDS = (buffer.KIND, memory.KIND, summary.KIND)
