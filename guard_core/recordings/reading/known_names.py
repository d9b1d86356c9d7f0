"""The names under which a format writes counts of tokens and tool calls, so that others are noticed; those of APIs.

A name is known because a reader reads it, or because what it counts is known and is not part of a prompt.
"""

from __future__ import annotations

import msgspec

Words = frozenset[str]


class Names(msgspec.Struct, frozen=True):
    """What one format writes.

    usage: keys whose objects hold counts of tokens, at any depth. counts: the names of counts in those. rests: those of
    them that are a whole less the cached tokens, which some providers make less than nothing. beside: names
    of counts that are elsewhere; holders: keys of the objects that they are in, below the top. windows: names of
    context windows. tools: keys and kinds of tool calls, results and definitions; kinds: those of them that are always
    parts; tool_endings: how further kinds end. passed_over: keys of what the reader leaves out on purpose, whatever is
    in it. totals: its files count the tokens of a session, not of calls.
    """

    usage: Words = frozenset()
    counts: Words = frozenset()
    rests: Words = frozenset()
    beside: Words = frozenset()
    holders: Words = frozenset()
    windows: Words = frozenset()
    tools: Words = frozenset()
    kinds: Words = frozenset()
    tool_endings: tuple[str, ...] = ("\n",)  # no kind ends so
    passed_over: Words = frozenset()
    totals: bool = False


def words(text: str) -> Words:
    """The words of a text, each a name."""
    return frozenset(text.split())


def united(*several: Names) -> Names:
    """The names of several formats, for a file that may hold any of them."""
    fields = {name: frozenset().union(*(getattr(names, name) for names in several)) for name in _SETS}
    endings = tuple(dict.fromkeys(ending for names in several for ending in names.tool_endings))
    return Names(**fields, tool_endings=endings, totals=any(names.totals for names in several))


_SETS = ("usage", "counts", "rests", "beside", "holders", "windows", "tools", "kinds", "passed_over")
ANTHROPIC_COUNTS = words(
    "input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens thinking_tokens"
    " ephemeral_5m_input_tokens ephemeral_1h_input_tokens cache_missed_input_tokens web_search_requests"
)
ANTHROPIC_USAGE = words("usage cache_creation iterations output_tokens_details server_tool_use cache_miss_reason")
ANTHROPIC_TOOLS = words("tool_use tool_result tool_reference tools content content_block server_tool_use")
ANTHROPIC_KINDS = words("tool_use tool_result")
ANTHROPIC_ENDINGS = ("_tool_result", "_tool_use", "_tool_result_error")
RESPONSES = words("response response_body responseBody response_obj completion output result message body")
CHAT_COUNTS = words(
    "prompt_tokens completion_tokens total_tokens input_tokens output_tokens cached_tokens reasoning_tokens"
    " cache_creation_tokens cache_creation_input_tokens cache_read_input_tokens audio_tokens image_tokens text_tokens"
    " video_tokens accepted_prediction_tokens rejected_prediction_tokens prompt_cache_hit_tokens"
    " prompt_cache_miss_tokens cached_prompt_text_tokens citation_tokens reasoning_output_tokens cache_write_tokens"
    " prompt_text_tokens prompt_image_tokens prompt_audio_tokens ephemeral_5m_input_tokens ephemeral_1h_input_tokens"
    " ttl_12h_tokens ttl_30m_tokens"
)
CHAT_USAGE = words(
    "usage metrics prompt_tokens_details completion_tokens_details input_tokens_details output_tokens_details"
    " cache_creation cache_creation_token_details cache_write_tokens_details server_tool_use token_usage"
)
CHAT_TOOLS = words("tool_calls tool_call function function_call tools functions tool_choice custom tool")
RESPONSES_TOOLS = words(
    "function function_call function_call_output tools tool_choice input output item items mcp_list_tools"
    " additional_tools namespace"
)
