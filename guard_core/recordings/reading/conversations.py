"""A conversation rebuilt from logged requests, each of which repeats the history: traces, runs and evaluation logs.

Every request that begins with the history so far only adds to the log. A request that keeps some of the history and
changes or drops the rest is a compaction that happened between two calls. A request that shares nothing with any
history begins a thread of its own (a sub-agent), or is a side call (a title, a summary); so does one that begins as an
earlier conversation did and has nothing of what followed (another run, another branch), and one that has messages of a
conversation under another system prompt and with other tools (another agent). Where a conversation ended there, and
the request holds the answer that summarised it, under the same system prompt and tools or in the words by which clients
open a summary, it continues that conversation; so does one in these words right behind a conversation of the same setup
that had filled much of its window.
"""

from __future__ import annotations

import re

import msgspec

from guard_core import defaults
from guard_core.events import Event, Part, TextPart, ToolCallPart
from guard_core.recordings.reading.overlap import is_summary_in, names_in, passages_in, quotes, text_of, words_of
from guard_core.recordings.reading.requests import Request, message_key
from guard_core.recordings.reading.summary_words import begins_with_summary
from guard_core.recordings.reading.system_summaries import is_text, summary_behind
from guard_core.recordings.reading.threads import Thread, speaks_of_summary
from guard_core.sessions import (
    MAY_BE_CONTINUED,
    MAY_BE_REPEATED,
    MAY_BE_SUMMARISED,
    MAY_BEGIN_WITH_SUMMARY,
    MAY_CONTINUE,
    MAY_FOLLOW,
    MAY_GO_ON,
    MAY_REPEAT,
    ModelCall,
)
from guard_core.windows.models import context_window

# How Claude Code (2.1) asks, behind the whole conversation, what the user may type next.
SUGGESTION = "[SUGGESTION MODE:"
_HEADED = re.compile(r"\W*summary\b", re.IGNORECASE)
LOOK_AHEAD = 12  # requests in which the old history may come back, before a shorter one counts as a compaction
FEWEST_CALLS = 3  # ours: of a conversation that another may go on from, the call that summarised it included
LOOK_FAR_AHEAD = 200  # requests in which a conversation may go on that another one seems to follow
LATEST_THREADS = 12  # the threads that a new conversation is compared with
FULL_SHARE = 0.5  # ours: of its window that a conversation fills before an agent compacts it
SHORTER = 4  # ours: so many times shorter than a conversation is what begins anew from a summary of it
HANDED_OVER = 300  # ours: letters of a first message that says where the work is, more than people type
SAME_FORM = 12  # ours: letters with which tasks begin that are set in the same words
LETTERS_OF_TOKEN = 4  # of prompts without a count


def threads_of(requests: list[Request], *, side_calls: bool = True) -> list[Thread]:
    """The contexts that the requests belong to, the one with the most calls first.

    With `side_calls`, threads of one call beside a longer one are folded into it (see `fold_side_calls`).
    """
    threads: list[Thread] = []
    latest: Thread | None = None  # of several calls that had the last request
    requests = _with_summaries_apart(requests)
    keys = _keys_of(requests)
    for index, request in enumerate(requests):
        thread = _thread_for(threads, requests, keys, index)
        if thread is None:
            before = _before(threads, requests, keys, index)
            behind = next((one for one in before if one is latest and _may_go_on(one, request)), None)
            thread = next((one for one in before if _continues(one, threads, request)), None)
            if thread is None and begins_with_summary(request.messages):
                thread = behind
            if thread is not None:
                thread.compact(request, keys[index])
                latest = thread
                continue
            branches = any(one.has_summary(keys[index]) for one in threads)
            thread = Thread(follows=_follows(before, behind, request), branches=branches)
            threads.append(thread)
            thread.add(request, keys[index])
        elif _asks_beside(request):
            thread.add_beside(request)
            continue
        elif thread.extends(keys[index], request.lost):
            thread.add(request, keys[index])
        elif (length := thread.rewound_length(request, keys[index])) is not None:
            thread.rewind(request, keys[index], length)
        else:
            thread.compact(request, keys[index])
        latest = thread if len(thread.calls) > 1 else latest
    for thread in threads:
        thread.end()
    threads.sort(key=lambda thread: -len(thread.calls))
    if side_calls and threads and len(threads[0].calls) > 1:
        return fold_side_calls(threads, threads[0])
    return threads


def _asks_beside(request: Request) -> bool:
    """Does a request end with a question of the agent's own, which is in no later one."""
    last = request.messages[-1].parts if request.messages else ()
    return any(isinstance(part, TextPart) and part.text.startswith(SUGGESTION) for part in last)


def _follows(before: list[Thread], behind: Thread | None, request: Request) -> str:
    """The note of a conversation that may continue an earlier one, which gets its own; "" where nothing says so.
    `behind`: the one that it may continue by its shape."""
    several = [thread for thread in before if len(thread.calls) >= FEWEST_CALLS]
    named = next((thread for thread in several if names_in(thread.events, request)), None)
    repeated = (
        next((thread for thread in several if passages_in(thread.events, thread.system, request)), None)
        if named is None
        else None
    )
    # Headed so, it is a summary: a message to summarise something begins with another word.
    is_headed = bool(several) and any(_HEADED.match(text_of(event.parts)) for event in request.messages[:1])
    spoken = several[0] if is_headed else None
    for thread, note, others in (
        (named, MAY_CONTINUE, MAY_BE_CONTINUED),
        (repeated, MAY_REPEAT, MAY_BE_REPEATED),
        (spoken, MAY_BEGIN_WITH_SUMMARY, MAY_BE_SUMMARISED),
        (behind, MAY_FOLLOW, MAY_GO_ON),
    ):
        if thread is not None:
            thread.followed = thread.followed or others
            return note
    return ""


def fold_side_calls(threads: list[Thread], main: Thread) -> list[Thread]:
    """The main thread, then the other contexts; threads of a single call become side calls of the main one, unless
    they begin with a summary."""
    sessions = [main]
    for thread in threads:
        if thread is main:
            continue
        if len(thread.calls) > 1 or thread.compactions or (thread.calls and begins_with_summary(thread.events)):
            sessions.append(thread)
            continue
        main.refused_beside += len(thread.refused)
        if thread.calls:
            beside = thread.side_calls if _name_summariser(main, thread) else [*thread.calls, *thread.side_calls]
            main.side_calls.extend(_placed(call, main) for call in beside)
            main.failed_again += thread.failed_again
    return sessions


def _with_summaries_apart(requests: list[Request]) -> list[Request]:
    """The requests, with a summary that a client wrote behind its system prompt as their first message: it takes the
    place of messages, and is compared and searched as one that stands among them is. Where none is missing, such words
    are a part of the prompt."""
    known: dict[tuple[Part, ...] | None, Request] = {}  # by system prompt without such summaries, the last request
    parted: dict[tuple[Part, ...] | None, tuple[tuple[Part, ...] | None, Event] | None] = {}
    apart = []
    for request in requests:
        system = request.system
        if request.declared is not None or request.lost or not is_text(system):
            apart.append(request)
            continue
        if system not in known and system not in parted:
            parted[system] = summary_behind(system, list(known)[-LATEST_THREADS:])
        if (parting := parted.get(system)) is None:
            known[system] = request
            apart.append(request)
        elif _has_all_of(request, known[parting[0]]):
            apart.append(request)
        else:
            messages = (parting[1], *request.messages)
            apart.append(msgspec.structs.replace(request, system=parting[0], messages=messages))
    return apart


def _has_all_of(request: Request, earlier: Request) -> bool:
    """Does a request begin with all messages of an earlier one."""
    pairs = zip(request.messages, earlier.messages, strict=False)
    is_as_long = 0 < len(earlier.messages) <= len(request.messages)
    return is_as_long and all(message_key(own) == message_key(other) for own, other in pairs)


def _keys_of(requests: list[Request]) -> list[list[bytes]]:
    known: dict[int, bytes] = {}  # by identity: recordings that keep each message once hand in the same object
    for request in requests:
        for event in request.messages:
            if id(event) not in known:
                known[id(event)] = message_key(event)
    return [[known[id(event)] for event in request.messages] for request in requests]


def _thread_for(threads: list[Thread], requests: list[Request], keys: list[list[bytes]], index: int) -> Thread | None:
    request, own = requests[index], keys[index]
    extended = [thread for thread in reversed(threads) if thread.extends(own, request.lost)]
    for thread in sorted(extended, key=lambda thread: -thread.repeated_answers(own, request.lost)):
        if thread.is_of_another(request) and thread.lacks_answer(own, request.lost):
            continue
        if thread.fails_again(request, own) or not _answer_comes_back(thread, requests, keys, index):
            return thread
    if request.declared is not None and threads:
        return max(threads, key=lambda thread: (thread.shares(own), len(thread.calls)))
    for thread in reversed(threads):
        if not thread.shares(own) or thread.is_of_another(request) or _comes_back(thread, requests, keys, index):
            continue
        if own in thread.begun or (_grows(keys, index) and thread.begins_again(request, own)):
            continue
        return thread
    return None


def _grows(keys: list[list[bytes]], index: int) -> bool:
    """Does a request soon after begin with this one."""
    own = keys[index]
    return any(own == later[: len(own)] != later for later in keys[index + 1 : index + 1 + LOOK_AHEAD])


def _before(threads: list[Thread], requests: list[Request], keys: list[list[bytes]], index: int) -> list[Thread]:
    """The conversations, the latest first, that ended where a request that repeats none of their messages begins one of
    the same setup that has later requests, or one that opens as a summary."""
    request, own = requests[index], keys[index]
    is_summary = begins_with_summary(request.messages)
    latest = [
        thread
        for thread in reversed(threads[-LATEST_THREADS:])
        if len(thread.calls) >= FEWEST_CALLS - 1
        and len(own) < len(thread.events)
        and not thread.shares(own)
        and (is_summary or thread.is_setup_of(request))
    ]
    if not latest or not (is_summary or _grows(keys, index)):
        return []
    following = range(index + 1, min(index + 1 + LOOK_FAR_AHEAD, len(requests)))
    return [
        thread for thread in latest if not any(thread.extends(keys[later], requests[later].lost) for later in following)
    ]


def _continues(thread: Thread, threads: list[Thread], request: Request) -> bool:
    """Does a request continue from a summary of a conversation: the answer to its last call, or to a call beside it; or
    one of the same setup that follows the refusal of its last request."""
    if len(thread.calls) >= FEWEST_CALLS and thread.answers_last(request):
        return True
    was_refused = thread.refused[-1:] == [len(thread.events)]
    is_summary = begins_with_summary(request.messages) or any(map(speaks_of_summary, request.messages))
    if was_refused and is_summary and thread.is_setup_of(request):
        return True
    beside = [one for one in threads[-LATEST_THREADS:] if one is not thread and len(one.calls) == 1]
    return any(one.answers_last(request) and quotes(one.events, thread.events) for one in beside)


def _may_go_on(thread: Thread, request: Request) -> bool:
    """May a request that repeats nothing of a conversation continue it, by its shape alone: it has the same model and
    setup, is far shorter, and comes where much of the window was filled and the work was not done, or it says at
    length where that is. Another task in the same form begins as this one did."""
    last = thread.calls[-1] if thread.calls else None
    if last is None or last.model != request.call.model or not thread.is_setup_of(request):
        return False
    letters, own = (sum(len(text_of(event.parts)) for event in events) for events in (thread.events, request.messages))
    was_refused = thread.refused[-1:] == [len(thread.events)]
    if SHORTER * own > letters or not (was_refused or _fills_window(last, letters)):
        return False
    task, words = words_of(thread.events[0]), "".join(map(words_of, request.messages))
    if words[:SAME_FORM] == task[:SAME_FORM]:
        return words.startswith(task) and words != task
    answer = thread.events[last.response].parts if last.response is not None else None
    is_over = answer is not None and not any(isinstance(part, ToolCallPart) for part in answer)
    return was_refused or not is_over or len(words) >= HANDED_OVER


def _answer_comes_back(thread: Thread, requests: list[Request], keys: list[list[bytes]], index: int) -> bool:
    """A request that asks something else about the history (a title): the last answer is missing, but comes later."""
    if thread.repeats_answer(keys[index], requests[index].lost):
        return False
    following = range(index + 1, min(index + 1 + LOOK_AHEAD, len(requests)))
    return any(thread.repeats_answer(keys[later], requests[later].lost) for later in following)


def _comes_back(thread: Thread, requests: list[Request], keys: list[list[bytes]], index: int) -> bool:
    """Is the whole history sent again soon after: then the request between is not a compaction."""
    following = range(index + 1, min(index + 1 + LOOK_AHEAD, len(requests)))
    return any(thread.extends(keys[later], requests[later].lost) for later in following)


def _fills_window(call: ModelCall, letters: int) -> bool:
    """Was the prompt of a call a large share of its model's window, as an agent's that compacts soon."""
    window = context_window(call.model)
    tokens = call.prompt_tokens or letters // LETTERS_OF_TOKEN
    return tokens >= FULL_SHARE * (defaults.WINDOW if window is None else window.value)


def _placed(call: ModelCall, main: Thread) -> ModelCall:
    """A side call at the place in the main log where its time falls."""
    before = [other.at for other in main.calls if (other.timestamp or 0) <= (call.timestamp or 0)]
    return msgspec.structs.replace(call, at=before[-1] if before else 0, response=None)


def _name_summariser(main: Thread, side: Thread) -> bool:
    """Name the call of a thread as the summariser of the compaction that has its answer; is there one?"""
    call = side.calls[0]
    if call.response is None:
        return False
    for index, compaction in enumerate(main.compactions):
        if compaction.summariser is None and is_summary_in(side.events[call.response], compaction.messages):
            summariser = msgspec.structs.replace(call, at=compaction.at, response=None)
            main.compactions[index] = msgspec.structs.replace(compaction, summariser=summariser)
            return True
    return False
