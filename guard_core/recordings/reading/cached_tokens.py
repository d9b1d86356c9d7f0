"""Does `input_tokens` hold the cached tokens, too? Anthropic counts them beside it, OpenAI inside; a gateway between
the two may write OpenAI's number under Anthropic's name, and the sum would be twice the prompt.

A provider reads from its cache what the call before sent. Beside each other, the cached tokens reach the sum of all
counts of that call, and only what is new is `input_tokens`; inside, they reach its `input_tokens` alone, and this call
has more of these. A prompt with as much new as cached text may look the same once, but not call after call while its
cached part grows: it would double each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from guard_core.sessions import ModelCall

LEAST_PAIRS = 2  # calls in turn that show it: one may be a large result
INSIDE = "cached tokens are counted inside input_tokens in {}, as OpenAI counts: they were not added again"
LEAST_REUSED = 0.5  # of the input before, as providers cache in blocks and forget


@dataclass(slots=True)
class _Chain:
    """One conversation: the call before, and the last one as far as its lines were read."""

    before: ModelCall | None = None
    last: ModelCall | None = None
    key: str = ""


class CachedTokens:
    """Hears the calls of a file in their order, and judges per model what its `input_tokens` hold."""

    def __init__(self) -> None:
        self._chains: dict[str, _Chain] = {}
        self._pairs: dict[str, tuple[int, int]] = {}  # by model: pairs that show them inside, and beside
        self._inside: frozenset[str] = frozenset()  # models that count them inside, once all calls were heard

    def hear(self, chain: str, key: str, call: ModelCall) -> None:
        """A call (the same key: more of the same one) of a conversation."""
        known = self._chains.setdefault(chain, _Chain())
        if key != known.key:
            self._judge(known)
            known.before, known.key = known.last or known.before, key
            known.last = None
        if call.prompt_tokens:
            known.last = call

    def judge(self) -> bool:
        """No call will follow. Does a model count them inside?"""
        for known in self._chains.values():
            self._judge(known)
        self._chains.clear()
        pairs = self._pairs.items()
        self._inside = frozenset(model for model, (inside, beside) in pairs if inside >= max(LEAST_PAIRS, beside + 1))
        return bool(self._inside)

    def counted(self, call: ModelCall) -> ModelCall:
        """A call with its prompt as it was counted; as it is in the file until it is judged."""
        is_inside = call.model in self._inside and _may_hold(call)
        return msgspec.structs.replace(call, prompt_tokens=_input(call)) if is_inside else call

    def _judge(self, known: _Chain) -> None:
        before, last = known.before, known.last
        if before is None or last is None or last.model != before.model:
            return
        read, earlier = last.cached_tokens or 0, before.cached_tokens or 0
        if read <= earlier:  # the cache gave no more than before: nothing says whether it is counted
            return
        most = _input(before) + (before.output_tokens or 0)
        is_inside = _may_hold(last) and _input(before) * LEAST_REUSED <= read <= most
        inside, beside = self._pairs.get(last.model, (0, 0))
        self._pairs[last.model] = (inside + is_inside, beside + (not is_inside))


def _input(call: ModelCall) -> int:
    """`input_tokens` as the file has them, where all counts were added up."""
    return (call.prompt_tokens or 0) - (call.cached_tokens or 0) - (call.cache_write_tokens or 0)


def _may_hold(call: ModelCall) -> bool:
    """Is there a cached part that `input_tokens` is large enough to hold?"""
    cached = (call.cached_tokens or 0) + (call.cache_write_tokens or 0)
    return 0 < cached <= _input(call)
