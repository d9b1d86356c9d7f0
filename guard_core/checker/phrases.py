"""The words around each number of a sentence, by kind of claim: they say which role the number has.

In braces is the name of a number of the claim, after a colon how it is said (`sentences.py` has these forms); the other
words are those around it, as many as distinguish it from every other number of its kind. `(s)` is a plural that may be
missing. A claim's own `step` and `count` are roles, too, unless its data have a number of that name; `compacted_at` is
the step of the first compaction that it names, as the session has it, and `assumed` the window that it rests on. Of a
verdict, `all_compactions` are those of the session, `edits` its recorded edits, and `largest` is the request that fills
most of its window, at `largest_step`, in a window of `largest_window`; what is on branches that were left begins
with `left_`.
"""

from __future__ import annotations

ANYWHERE = (
    "the window is {assumed}",
    "{uncounted} of {all_calls} call(s) not counted",
    "what triggered {unknown_trigger} of them",
    "{agent}",
)

_COMPACTION = "Compaction {compaction:place} (step {compacted_at:place})"
_FIRST_COMPACTION = "Compaction {compactions:first} (step {compacted_at:place})"
_COMPACTIONS = "Compaction(s) {compactions:list}:"
_IN_NO_REQUEST = "(message {message:place}) is in no request from step {step:place} up to the end of"
_MORE = "{compactions:others} more compaction(s)"
_OF_WINDOW = "window of {window}"
_OF_STATED_WINDOW = " of {window}. Set the real window"
_FELL = "fell from {before} to {after} tokens at step {step:place}"
_RETURNED = "returned to {back} at step {back_step:place}"
_LOOP = "{length} compactions at consecutive steps {first:place} to {last:place}"
_LOOP_OF_SEVERAL = "{all} compactions at {length} consecutive steps, steps {first:place} to {last:place}"
_PACE = (
    "{length} compactions in steps {first:place} to {last:place}",
    "on average one every {mean_gap:mean} steps",
    "{all} compactions at {length} of the steps {first:place} to {last:place}, on average every {mean_gap:mean} steps",
)
_REQUESTS = (
    "request of step {first:place} is",
    "requests of steps {first:place} to {last:place} are",
)
_FIRED = (
    "at {high} tokens",
    "a prompt of {high} tokens",
    "at {low} to {high} tokens",
    "prompts of {low} to {high} tokens",
    _OF_WINDOW,
)
_REFUSED = ("{requests} request(s) failed", "after step {after:place}", "before step 1")
_ON_AVERAGE = "Prompts of {tokens} tokens on average"

FINDINGS: dict[str, tuple[str, ...]] = {
    "window_contradicted": (
        "A prompt of {tokens} tokens was answered at step {step:place}",
        f"{_ON_AVERAGE} over {{calls}} call(s)",
        _OF_STATED_WINDOW,
    ),
    "window_doubted": ("{compactions} compaction(s) took place", *_FIRED),
    "overflow": (
        *_REQUESTS,
        "{calls} requests between step {first:place} and step {last:place} are",
        _OF_WINDOW,
        "of its model, {window}",
        "of their model, {window}",
        "at worst one of {window}",
        ": {tokens} tokens",
        "tokens at step {step:place}",
        "{over_share:share} % too many",
    ),
    "near_miss": (
        "request of step {step:place} fills {share:share} % of",
        ": {tokens} of {window} tokens",
        "rose above 90.0 % {approaches} times",
    ),
    "late": (
        "Compaction {compaction:place} came too late, at step {step_compacted:place}",
        "request of step {step_over:place} has {tokens} tokens",
        "{tokens/window:excess} % over the window of {window}",
        "So did {compactions:others} later",
    ),
    "counted_over": (
        "compaction {compaction:place} (step {compacted_at:place}) the agent counted {tokens} tokens",
        _OF_WINDOW,
        _MORE,
    ),
    "refused": (*_REFUSED, "stated {stated} tokens", "a limit of {limit}", _OF_WINDOW, "by hand of {window}"),
    "refused_again": (
        *_REQUESTS,
        "{requests} requests between step {first:place} and step {last:place} are",
        "refused before step 1:",
        "refused after step {after:place}:",
        ": {tokens} tokens at step {step:place}, {refused_tokens} there",
    ),
    "needless": (
        "{compactions} compaction(s) was",
        "{compactions} compaction(s) were",
        "{compactions} automatic compaction(s)",
        "leaves room for an answer of {answer} tokens",
        "has {peak} tokens at step {peak_step:place}, {peak/window:share} % of",
        _OF_WINDOW,
    ),
    "needed": (
        "the peak is {peak/window:share} % of",
        _OF_WINDOW,
        "at step {peak_step:place}, {calls_over} call(s) over",
        "at step {peak_step:place}, no call over",
        "come {could_wait} call(s) later, at step {first_over:place}",
        "and {tight} call(s) without room for an answer of {answer} tokens",
    ),
    "part_lost": (
        "(message {message:place}), ",
        "left the context at step {step:place} (",
        "(compaction {compaction:place})",
        "up to step {last:place}, the end",
        "for {count:others} more sentence(s)",
    ),
    "rule_lost": (
        _IN_NO_REQUEST,
        "(message {message:place}) left the context at step {step:place} (",
        "(compaction {compaction:place})",
        "up to step {last:place}, the end",
        "for {count:others} more rule(s)",
    ),
    "earlier_rule_lost": (
        _IN_NO_REQUEST,
        "(message {message:place}) left the context at step {step:place} (",
        "(compaction {compaction:place})",
        "for {count:others} more rule(s) of earlier turns",
        "for at least {count:others} more rule(s) of earlier turns",
    ),
    "todo_lost": (
        "(message {message:place}) left the context at step {step:place} (",
        "(compaction {compaction:place})",
        "for {count:others} more todo(s) of that list",
        "its todos later (message {later:place})",
    ),
    "request_lost": (
        "left the context at step {step:place} (",
        "missing from the request of step {first_absent:place} (",
        "missing from the requests of steps {first_absent:place} to {last_absent:place} (",
        "compaction {compaction:place})",
        "Compaction(s) {quoted_by:list} still quoted",
        "Compaction(s) {quoted_by:list} quoted",
        "summary of compaction(s) {sealed:beginning}, which",
        "Message {continued_by:place} asks only to continue with it",
        "The summary of compaction {forgotten_by:place} (step {forgotten_at:place}) no longer does",
        "After compaction {compaction:place} (step {compacted_at:place})",
        "(message {message:place})",
        _MORE,
    ),
    "grown": (
        _COMPACTION,
        ": {before} → {after} tokens",
        ": {before} (modelled) → {after} tokens",
        "{count:others} more compaction(s)",
    ),
    "summary_not_kept": (
        _COMPACTION,
        "last: {before} → {after} tokens, and {again} again at step {again_step:place}",
        "last: {before} (modelled) → {after} tokens, and {again} again at step {again_step:place}",
        "only {added} (modelled)",
        "{count:others} more compaction(s)",
    ),
    "loop": (_LOOP, _LOOP_OF_SEVERAL, "from {before} to {after} tokens, the next began at {again}"),
    "sliding_window": ("from step {first:place} to step {last:place}, {changed} of {calls} calls",),
    "thrash": _PACE,
    "sealed_summary": (_COMPACTIONS,),
    "fallback_summary": (_COMPACTIONS,),
    "empty_summary": (_COMPACTIONS,),
    "left_branches": (
        "{messages} message(s) on abandoned branches",
        "{compactions} compaction(s)",
        "{refused} request(s) refused",
        "a prompt of {largest} tokens, more than any here ({peak})",
    ),
    "silent_truncation": (_FELL, _RETURNED, "about {added} were added", "{count:others} more fall(s)"),
    "usage_in_characters": (
        "Of {compared} recorded count(s) after {least_bytes} bytes of new text or more, {same} grew",
        "The first is step {step:place}",
    ),
    "usage_repeated": ("{repeated} of {counted} recorded counts", "The first is step {step:place}"),
    "cached_above": ("{above} of {counted} recorded count(s)", "first at step {step:place}: {cached} of {prompt}"),
    "repeated_call": (
        "A tool was called {rounds} times in a row",
        "The same {cycle} calls were made {rounds} times in turn",
        "(steps {first:place} to {last:place})",
        "(step {first:place})",
        "{runs:others} more such run(s)",
    ),
    "asked_again": (
        "After compaction {compaction:place} (step {compacted_at:place}), the agent got {results} tool results again",
        "same result): {tokens} tokens",
        _MORE,
    ),
    "results_cleared": (
        "of {messages} older message(s)",
        "from step {step:place} on",
        "at {edits} steps, the first step {step:place}",
        "({cuts} cuts in all)",
        "about {tokens} tokens less (estimated), {bytes} bytes",
        "records {recorded} of these",
    ),
    "no_usage": (
        "None of the {calls} ",
        "{missing} of {calls} call(s)",
        "{missing} of {calls} answered call(s)",
        "usage: step {step:place}",
        "The first is step {step:place}",
        "{total} prompt token(s) over all calls",
        "{total} prompt token(s) over {total_calls} call(s), {average} on average",
        "than the {calls} here, a request had {each} on average",
    ),
    "never_paid": (
        _COMPACTION,
        "it cost {paid:dollars} at once",
        "and {calls} later call(s)",
        "saved {saved:dollars} (",
        "cost another {saved:loss} (",
        _MORE,
    ),
    "timing_gap": (_FIRST_COMPACTION, "last count {seen}, estimate {now}, threshold {threshold}", _MORE),
    "no_fit": (
        "request of step {step:place}:",
        "about {floor} tokens",
        _OF_WINDOW,
        "threshold of {threshold}",
    ),
    "still_over": (
        "pass at step {step:place} ",
        "threshold of {threshold} tokens (estimated {heuristic} before",
        "still had {tokens} tokens",
        "not below the threshold of {threshold}",
        "{count:others} more step(s)",
    ),
    "correction_limited": (
        "its limit at {count} step(s): at step {step:place}, {raw:factor} was needed and {applied:factor} used",
    ),
    "inline_data": (
        "compaction at step {step:place} was",
        "an estimate of {estimate} tokens",
        "about {real} (modelled): {inline_share:share} % of",
        "{count:others} more compaction(s)",
    ),
    "stacked_continuations": (_COMPACTIONS, "{continuations} at step {step:place}"),
    "tail_lost": (_FIRST_COMPACTION, "messages {first:place} to {last:place}", _MORE),
    "avoided_overflows": (
        "removes {count} overflow(s): without compaction {without} call(s)",
        _OF_WINDOW,
        "with it {with} (",
    ),
    "own_early": (
        "Compaction {compactions:first} (step {step:place})",
        ": {count} is {tokens} tokens below its threshold of {threshold}",
        ": at most {count} is at least {tokens} tokens below its threshold of {threshold}",
        _MORE,
    ),
    "own_missed": (
        "fires at {checks} check(s) at which",
        "at step {step:place}: {count} ≥ {threshold}",
        "at step {step:place}: {count} > {threshold}",
    ),
    "other_threshold": (
        "threshold above {low} (step {low_step:place})",
        "threshold of at least {low} (step {low_step:place})",
        "at most {high} (compaction {high_compaction:place})",
        "below {high} (compaction {high_compaction:place})",
        "If compaction {high_compaction:place} was automatic,",
        "that of 1 compaction, which a person may",
        "those of {left_out} compactions, which a person may",
        "not the {threshold} of",
        "assumed {assumed_window} would give {threshold}",
        "{uncounted_compactions} of {automatic_compactions} compaction(s)",
    ),
    "setting_never_acts": (
        "The typed {setting} of {value} never acts: with it the threshold is {threshold},",
        "compacted at {high} (step {high_step:place})",
        "not compact at {low} (step {low_step:place})",
    ),
}

OF_ANY_VERDICT = (
    "{all_compactions} compaction(s);",
    "peak {largest/largest_window:share} % of the window at step {largest_step:place}",
    "peak {largest/largest_window:share} % of its model's window at step {largest_step:place}",
)

VERDICTS: dict[str, tuple[str, ...]] = {
    "no_calls": ("{requests} request(s) failed",),
    "healthy": (
        "{all_compactions} compaction(s) at the end",
        "{all_compactions} compaction(s), what",
        "No compaction, {edits} recorded edit(s)",
        "{left_refused} overflow(s) on others",
        "{left_compactions} on others",
        "{left_largest} tokens on another",
        "peak {peak} tokens of an unknown window at step {peak_step:place}",
        "peak {largest/largest_window:share} % (",
    ),
    "window_contradicted": ("A prompt of {tokens} tokens was", _ON_AVERAGE, _OF_STATED_WINDOW),
    "window_doubted": ("{compactions} compaction(s)", *_FIRED),
    "overflow": (
        "estimated at {over_share:whole} % of the window at step {step:place}",
        "{calls} call(s) over the window, step {first:place}",
        "{calls} call(s) over the window, the first at step {first:place}",
        "peak {over_share:whole} % of it",
    ),
    "near_miss": ("step {step:place} fills {share:share} % of",),
    "late": ("too late: step {step_over:place} was {tokens/window:excess} % over",),
    "counted_over": ("counted {tokens} tokens at step {step:place}", _OF_WINDOW),
    "refused": (*_REFUSED, "{stated} tokens, the provider", "{stated} tokens plus an answer", "provider takes {limit}"),
    "refused_again": ("{requests} request(s), up to {tokens} tokens",),
    "repeated_call": (
        "a tool was called {rounds} times in a row",
        "the same {cycle} calls were made {rounds} times in turn",
        "result(s) (steps {first:place} to {last:place})",
        "result(s) (step {first:place})",
    ),
    "needless": (
        "{all_compactions} compaction(s), not needed",
        "{all_compactions} compaction(s), none needed",
        "{all_compactions} compaction(s), {compactions} not needed",
        "peak is {peak/window:share} % of",
        ", peak {peak/window:share} % of",
        "window at step {peak_step:place}",
    ),
    "needed": (
        "{all_compactions} compaction(s), no overflow",
        "Without any: peak {peak/window:share} % of",
        "Without any but the manual ones: peak {peak/window:share} % of",
        ", {calls_over} call(s) over it",
        ", {tight} call(s) lacking room",
    ),
    "request_lost": (
        "after step {step:place} the request is",
        "left the context at step {step:place}; nothing",
        "left the context by step {step:place}; nothing",
        "missing from the request of step {first_absent:place}.",
        "missing from the requests of steps {first_absent:place} to {last_absent:place}.",
    ),
    "part_lost": ("left the context at step {step:place};",),
    "rule_lost": ("left the context at step {step:place};",),
    "earlier_rule_lost": ("left the context at step {step:place};",),
    "todo_lost": ("left the context at step {step:place};",),
    "grown": ("compaction {compaction:place} ", ": {before} to {after} tokens at step {step:place}"),
    "summary_not_kept": (
        "compaction {compaction:place} did not last: {again} tokens are back at step {again_step:place}",
    ),
    "loop": (_LOOP, _LOOP_OF_SEVERAL),
    "sliding_window": ("Sliding window: {changed} call(s) from step {first:place}",),
    "thrash": _PACE,
    "empty_summary": ("the summary at step {step:place} is",),
    "silent_truncation": (_FELL, _RETURNED),
    "usage_in_characters": ("{same} recorded counts",),
    "usage_repeated": ("{repeated} of {counted} recorded counts",),
    "cached_above": ("{above} of {counted} recorded count(s)",),
    "results_cleared": (
        "Tool results of {messages} message(s)",
        "first at step {step:place};",
        "peak {largest/largest_window:share} % (",
    ),
    "no_usage": (
        "{total} prompt token(s) in total, {each} each if there were {calls};",
        "{total} prompt token(s) in total;",
    ),
    "timing_gap": ("step {step:place} was caught", "(last count {seen}, estimate {now})"),
    "no_fit": ("about {floor} tokens", "over the limit at step {step:place}"),
    "inline_data": (
        "at step {step:place} {inline_share:share} % of the estimate of {estimate} was",
        "the request had {real} (modelled)",
    ),
    "tail_lost": ("messages {first:place} to {last:place}, kept at step {step:place},",),
    "own_early": (
        "step {step:place} compacted",
        ": {count}, below {threshold}",
        ": at most {count}, below {threshold}",
    ),
    "own_missed": (
        "compacted at step {step:place}: {count} reached {threshold}",
        "compacted at step {step:place}, too: {count} reached {threshold}",
    ),
    "other_threshold": (
        "is at most {high}",
        "is below {high}",
        "is above {low}",
        "is at least {low}",
        "not the default {threshold}",
        "its window is not known, the assumed {assumed_window} would give {threshold}",
    ),
    "setting_never_acts": (
        "the typed {setting} of {value} never acts",
        "compacted at {high}; its threshold would be {threshold}",
        "not compact at {low}; its threshold would be {threshold}",
    ),
}
