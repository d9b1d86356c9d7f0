"""Lanes: in which requests a snippet is, and which compaction lost it."""

from itertools import product

import pytest
from msgspec.structs import replace

from guard_core.checker import check
from guard_core.facts.lanes import Search, Snippet, SnippetState, places_of, worst_first
from guard_core.facts.proposals import instructions
from guard_core.facts.words import blind_words, outcome_words, read_again_words, summary_words
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.replay import replay as played
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.findings.cases import compaction

RULE = "Never rename the column tenant in the billing tables"
NEAR = "The billing tables stay as they are: do not rename the tenant column."  # a paraphrase of it
ENGLISH = "Always answer in English please"
EUROS = "Never convert the euros of an invoice to dollars"


def talk(*compactions, after=(), first=RULE):
    """Six calls, each over one more event; `after`: events by index that say something else."""
    events = [user(first), *(model("working on it") for _ in range(6))]
    for index, event in dict(after).items():
        events[index] = event
    calls = tuple(ModelCall(step + 1, step + 1, 1_000 + 100 * step) for step in range(6))
    return session(*events, calls=calls, compactions=compactions)


def lane_of(built, text=RULE, event=0):
    (lane,) = search(built, Snippet("rule", text, event)).lanes()
    return lane


def search(built, *snippets, sent=None):
    sent = sent or SentRequests.recorded(Facts.of(built))
    return Search(sent, snippets, places_of(snippets, enumerate(built.events)), built.events.__getitem__)


def runs(lane):
    return [(start, stop, state.name) for start, stop, state in lane.runs()]


def test_what_no_summary_says_is_lost_at_its_compaction():
    lane = lane_of(talk(compaction(3, summary="Half is done.")))
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 6, "GONE")]
    assert (lane.lost.step, lane.lost.compaction, lane.last_step, lane.last_verbatim) == (2, 0, 1, 1)
    assert outcome_words(lane) == "lost at step 3 (compaction 1); the last request with it is step 2"


def test_a_quotation_in_the_summary_is_lost_at_the_compaction_that_drops_it():
    lane = lane_of(talk(compaction(3, summary=f"The user: “{RULE}”."), compaction(5, summary="Nearly done.")))
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 4, "QUOTED"), (4, 6, "GONE")]
    assert (lane.lost.step, lane.lost.compaction) == (4, 1)


@pytest.mark.parametrize(
    ("summaries", "blamed"),
    [
        (("Half is done.", "Nearly done."), 0),
        ((f"Task: {RULE}", "Nearly done."), 1),
        (("Half is done.", f"Task: {RULE}", "Nearly done."), 2),
        (("Half is done.", "More is done.", "Nearly done."), 0),
    ],
)
def test_of_compactions_before_one_call_the_one_that_lost_it_is_blamed_as_by_the_finding(summaries, blamed):
    built = talk(*(compaction(3, summary=summary) for summary in summaries))
    (finding,) = (item for item in recorded_findings(Facts.of(built)) if item.kind == "request_lost")
    assert (lane_of(built).lost.compaction, finding.numbers["compaction"]) == (blamed, blamed)


LEAVES = {"words": {"summary": f"Task: {RULE}"}, "none": {"summary": "Half is done."}, "sealed": {"kind": "opaque"}}


@pytest.mark.parametrize("left", list(product(LEAVES, repeat=3)), ids="-".join)
@pytest.mark.parametrize("ats", [(2, 4, 6), (2, 4, 4)])
def test_lane_and_finding_agree_on_where_it_was_lost_whatever_can_be_read(left, ats):
    built = talk(*(compaction(at, **{"summary": "", **LEAVES[name]}) for at, name in zip(ats, left, strict=True)))
    (finding,) = (item for item in recorded_findings(Facts.of(built)) if item.kind == "request_lost")
    assert check(built, [finding], judge_session(built)) == []
    losses = lane_of(built).losses
    first = next((change for change in losses if change.after is SnippetState.GONE), losses[0] if losses else None)
    assert finding.severity == ("warning" if first is not None and first.after is SnippetState.GONE else "info")
    assert finding.numbers["first_absent"] == (-1 if first is None else first.step)
    assert first is None or finding.numbers["compaction"] == first.compaction


def test_a_passage_with_enough_of_its_words_is_a_paraphrase_and_words_far_apart_are_none():
    near = "The billing tables stay as they are: do not rename the tenant column."
    far = "A column was added.\nTests pass.\nLint passes.\nThe tenant logs in.\nAll fine.\nDone.\nSee billing."
    assert runs(lane_of(talk(compaction(3, summary=near))))[-1] == (2, 6, "PARAPHRASED")
    assert runs(lane_of(talk(compaction(3, summary=far))))[-1] == (2, 6, "GONE")


def test_a_sealed_summary_leaves_it_open():
    lane = lane_of(talk(compaction(3, summary="", kind="opaque")))
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 6, "UNKNOWN")]
    assert outcome_words(lane).startswith("left at step 3 (compaction 1); only a summary whose text is unknown")


def test_behind_a_sealed_summary_it_is_lost_where_a_readable_one_lacks_it():
    lane = lane_of(talk(compaction(3, summary="", kind="opaque"), compaction(5, summary="Nearly done.")))
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 4, "UNKNOWN"), (4, 6, "GONE")]
    assert (lane.lost.step, lane.lost.compaction, len(lane.losses)) == (4, 1, 1)
    assert outcome_words(lane) == (
        "lost at step 5 (compaction 2) at the latest; the last request known to have it is step 2"
    )


def test_what_only_a_sealed_summary_can_have_had_is_not_said_to_be_in_no_request():
    """A message that no call was made with, before a compaction whose summary cannot be read."""
    for cuts, states, words in (
        (
            (compaction(3, summary="", kind="opaque"),),
            [(0, 2, "NOT_YET"), (2, 6, "UNKNOWN")],
            "in no message that was sent; from step 3 on (compaction 1) only a summary whose text is unknown can hold "
            "it",
        ),
        (
            (compaction(3, summary="", kind="opaque"), compaction(5, summary="Nearly done.")),
            [(0, 2, "NOT_YET"), (2, 4, "UNKNOWN"), (4, 6, "GONE")],
            "lost at step 5 (compaction 2) at the latest; no request is known to have it",
        ),
    ):
        lane = lane_of(talk(*cuts, after={2: user(RULE)}, first="Please begin with the report"), event=2)
        assert runs(lane) == states
        assert outcome_words(lane) == words


def test_what_is_lost_is_not_in_a_sealed_summary_of_what_is_left():
    lane = lane_of(talk(compaction(3, summary="Half is done."), compaction(5, summary="", kind="opaque")))
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 6, "GONE")]
    assert (lane.lost.step, lane.lost.compaction) == (2, 0)


@pytest.mark.parametrize("at", [4, 3])
def test_what_came_back_before_a_sealed_summary_may_be_in_it(at):
    again = talk(
        compaction(3, summary="Half is done."), compaction(5, summary="", kind="opaque"), after={at: user(RULE)}
    )
    assert runs(lane_of(again))[-1] == (4, 6, "UNKNOWN")


def test_a_sealed_summary_that_left_no_message_leaves_it_open():
    sealed = replace(compaction(3, kind="opaque"), base=(), messages=())
    assert runs(lane_of(talk(sealed))) == [(0, 2, "VERBATIM"), (2, 6, "UNKNOWN")]


def test_what_a_tool_reads_again_is_counted_with_its_tokens():
    built = talk(compaction(3, summary="Half is done."), after={3: tool_call(), 4: tool_result({"text": RULE})})
    lane = lane_of(built)
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 4, "GONE"), (4, 6, "VERBATIM")]
    assert lane.read_again == (4,)
    assert lane.read_again_tokens == int(Facts.of(built).attribution.tokens[4]) > 0
    assert read_again_words(lane).startswith("read again 1 time, ")
    assert (lane.lost, len(lane.losses)) == (None, 1)


def test_what_is_typed_again_and_lost_again_has_both_losses():
    built = talk(compaction(2, summary="Half is done."), compaction(5, summary="Nearly done."), after={3: user(RULE)})
    lane = lane_of(built)
    assert runs(lane) == [(0, 1, "VERBATIM"), (1, 3, "GONE"), (3, 4, "VERBATIM"), (4, 6, "GONE")]
    assert outcome_words(lane) == (
        "lost at step 2 (compaction 1), back at step 4 with message 4, lost at step 5 (compaction 2); the last request "
        "with it is step 4"
    )


def test_losses_between_the_first_and_the_last_are_counted():
    marks = (compaction(at, summary="Half is done.") for at in (2, 4, 6))
    lane = lane_of(talk(*marks, after={2: user(RULE), 4: user(RULE)}))
    assert len(lane.losses) == 3
    assert ", lost and back 1 more time, lost at step 6 (compaction 3); " in outcome_words(lane)


def test_before_it_is_said_it_is_not_lost():
    lane = lane_of(
        talk(after={3: user("Only use metric units in the report")}), "Only use metric units in the report", 3
    )
    assert runs(lane) == [(0, 3, "NOT_YET"), (3, 6, "VERBATIM")]
    assert lane.lost is None


@pytest.mark.parametrize(
    ("kind", "summary", "state"),
    [
        ("rule", "Rules: pushing to the main branch is forbidden.", "PARAPHRASED"),
        ("rule", "Rules: use tabs. The first file was read.", "GONE"),
        ("quantity", "Rules: pushing to the main branch is forbidden.", "GONE"),
    ],
)
def test_a_rule_of_few_words_is_said_by_a_passage_with_each_of_them(kind, summary, state):
    """As in the findings, which do not call such a rule lost."""
    rule = "Never push to main."
    built = talk(compaction(3, summary=summary), first=f"{rule} Look at the billing tables.")
    (lane,) = search(built, Snippet(kind, rule, 0)).lanes()
    assert lane.last_state.name == state


GERMAN = (
    "Zusammenfassung: Der Benutzer will, dass in den Tabellen nichts umbenannt wird, und die Arbeit ist nicht fertig."
)
CHINESE = "摘要：用户希望修复账单表格的错误，并且绝对不要重命名任何列。目前已经阅读了第一个文件，接下来继续修改。"


@pytest.mark.parametrize("summary", [GERMAN, CHINESE])
def test_what_only_a_summary_in_another_language_can_hold_is_perhaps_translated(summary):
    """As the findings say, which do not call such a rule lost."""
    built = talk(compaction(3, summary=summary))
    lane = lane_of(built)
    assert runs(lane) == [(0, 2, "VERBATIM"), (2, 6, "TRANSLATED")]
    assert outcome_words(lane) == (
        "left at step 3 (compaction 1); only a summary in another language can hold it; the last request with it is "
        "step 2"
    )
    assert summary_words((lane,)) == (
        "The words of the one instruction are not in the last request: it is perhaps translated in a summary."
    )
    assert not {"rule_lost", "earlier_rule_lost"} & {item.kind for item in recorded_findings(Facts.of(built))}


BEFORE = (
    "This session is being continued from a previous conversation that ran out of context. The summary below covers "
    "the earlier portion of the conversation."
)
BEHIND = (
    "If you need specific details from before the compaction, read the full transcript. Continue with the last task "
    "that you were asked to work on, without asking the user any further questions."
)
WITHIN = "The first file was read, and the totals of the invoices are right. The label of the table is:"


@pytest.mark.parametrize(
    ("summary", "state"),
    [
        (f"{BEFORE}\n\n{CHINESE}\n{BEHIND}", "TRANSLATED"),
        (f"{BEFORE}\n\n{CHINESE[:30]}\n/src/billing/tables.py\n{CHINESE[30:]}\n{BEHIND}", "TRANSLATED"),
        (f"{BEFORE}\n\n{WITHIN}\n账单\n{BEHIND}", "GONE"),  # is too short to say it
        (f"{BEFORE}\n\n{WITHIN}\n{CHINESE}\n" + 30 * f"{WITHIN}\n" + BEHIND, "GONE"),  # longer than any frame
        (f"{BEFORE}\n\n{CHINESE[:30]}\n" + 3 * f"{WITHIN}\n" + f"{CHINESE[30:]}\n{BEHIND}", "GONE"),
    ],
)
def test_what_a_client_writes_around_a_summary_is_not_counted_with_its_letters(summary, state):
    built = talk(compaction(3, summary=summary))
    assert lane_of(built).last_state.name == state
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    assert [item.severity for item in claims if item.kind == "request_lost"] == [
        "warning" if state == "GONE" else "info"
    ]


def test_a_summary_in_another_language_holds_nothing_that_was_gone_or_not_said_before():
    dropped_before = talk(compaction(2, summary="Half is done."), compaction(4, summary=CHINESE))
    assert runs(lane_of(dropped_before)) == [(0, 1, "VERBATIM"), (1, 6, "GONE")]
    later = talk(compaction(3, summary=CHINESE), after={4: user(RULE)}, first="Hello there")
    assert runs(lane_of(later, event=4)) == [(0, 4, "NOT_YET"), (4, 6, "VERBATIM")]


def test_what_the_next_summary_does_not_translate_back_is_lost_there_at_the_latest():
    lane = lane_of(talk(compaction(3, summary=CHINESE), compaction(5, summary="Half is done.")))
    assert (lane.lost.step, lane.last_state) == (4, SnippetState.GONE)
    assert outcome_words(lane).startswith("lost at step 5 (compaction 2) at the latest; the last request known to have")


def test_a_name_is_gone_in_whatever_language_the_summary_is():
    built = talk(compaction(3, summary=CHINESE), first=f"{RULE} in src/billing.py")
    (lane,) = search(built, Snippet("path", "src/billing.py", 0)).lanes()
    assert lane.last_state is SnippetState.GONE


def test_nothing_is_a_paraphrase_of_what_was_not_said_yet():
    near = "The billing tables stay as they are: do not rename the tenant column."
    built = talk(compaction(3, summary=near), after={4: user(RULE)}, first="Hello there")
    assert runs(lane_of(built, event=4)) == [(0, 4, "NOT_YET"), (4, 6, "VERBATIM")]


def test_the_system_prompt_is_in_every_request():
    built = replace(talk(compaction(3, summary="Half is done."), first="Hello there"), system=user(RULE).parts)
    assert runs(lane_of(built, event=-1)) == [(0, 6, "VERBATIM")]


def test_a_replay_says_what_only_its_unwritten_summary_can_hold():
    built = session(*(user(f"{RULE} {turn}. " + "w " * 4_000) if turn % 2 == 0 else model("ok") for turn in range(40)))
    facts = Facts.of(built)
    trace = played(facts.ledger, get_policy("contextguard"), window=30_000, summarizer=FixedSummaries(500))
    (lane,) = search(built, Snippet("rule", f"{RULE} 0"), sent=SentRequests.replayed(facts, trace)).lanes()
    assert lane.last_state is SnippetState.UNKNOWN
    assert lane.lost.step == trace.compactions[0].step


def test_the_worst_come_first_and_are_counted():
    built = talk(compaction(3, summary="Half is done."), after={5: user("Always answer in English please")})
    kept, lost = Snippet("rule", "Always answer in English please", 5), Snippet("rule", RULE, 0)
    lanes = search(built, kept, lost).lanes()
    assert [lane.snippet for lane in worst_first(lanes)] == [lost, kept]
    assert summary_words(lanes) == "The words of 1 of 2 instructions are in the last request, 1 lost."


@pytest.mark.parametrize(
    ("texts", "summary", "said"),
    [
        ((RULE,), "Half is done.", "the one instruction are not in the last request: it is lost."),
        ((RULE, ENGLISH), "Half is done.", "none of the 2 instructions are in the last request: both are lost."),
        (
            (RULE, ENGLISH, EUROS),
            "Half is done.",
            "none of the 3 instructions are in the last request: all 3 are lost.",
        ),
        (
            (RULE, ENGLISH),
            NEAR,
            "none of the 2 instructions are in the last request: 1 only paraphrased, 1 lost.",
        ),
    ],
)
def test_of_a_last_request_without_the_words_of_any_instruction_that_is_said(texts, summary, said):
    said_at = {index: user(text) for index, text in enumerate(texts)}
    built = talk(compaction(5, summary=summary), after=said_at)
    lanes = search(built, *(Snippet("rule", text, index) for index, text in enumerate(texts))).lanes()
    assert summary_words(lanes) == f"The words of {said}"


def test_words_that_the_last_request_may_have_are_not_denied_to_it():
    counts = (80_000, 81_000, 9_000, 10_000, 11_000, 12_000)
    fell = replace(talk(), calls=tuple(ModelCall(step + 1, step + 1, tokens) for step, tokens in enumerate(counts)))
    assert summary_words(search(fell, Snippet("rule", RULE, 0)).lanes()) == (
        "The words of the one instruction are not known to be in the last request: it is unknown since the recorded "
        "prompt fell."
    )


def test_what_is_only_paraphrased_is_not_counted_among_the_words_of_the_last_request():
    near = "The billing tables stay as they are: do not rename the tenant column."
    quoted = Snippet("rule", "Always answer in English please", 5)
    built = talk(compaction(3, summary=near), after={5: user(quoted.text)})
    lanes = search(built, quoted, Snippet("rule", RULE, 0)).lanes()
    assert summary_words(lanes) == "The words of 1 of 2 instructions are in the last request, 1 only paraphrased."


@pytest.mark.parametrize(
    ("compactions", "until"), [((), "from there on"), ((compaction(6),), "from there to the next compaction")]
)
def test_a_prompt_that_fell_without_a_compaction_leaves_open_what_later_requests_have(compactions, until):
    built = talk(*compactions)
    assert blind_words(Facts.of(built)) == ""
    counts = (80_000, 81_000, 9_000, 10_000, 11_000, 12_000)
    calls = tuple(replace(call, prompt_tokens=count) for call, count in zip(built.calls, counts, strict=True))
    assert blind_words(Facts.of(replace(built, calls=calls))) == (
        "The recorded prompt fell from 81,000 to 9,000 tokens at step 3, and no compaction is recorded there: whether "
        f"the requests {until} still have what was said before is not known."
    )


def test_of_several_falls_those_after_which_the_prompt_returned_are_not_counted():
    built = talk()
    counts = (80_000, 20_000, 81_000, 40_000, 41_000, 30_000)
    calls = tuple(replace(call, prompt_tokens=count) for call, count in zip(built.calls, counts, strict=True))
    assert blind_words(Facts.of(replace(built, calls=calls))).startswith(
        "The recorded prompt fell from 81,000 to 40,000 tokens at step 4 (and at 1 other step, without returning), and"
    )


def test_after_a_silent_fall_only_what_came_again_is_known_to_be_in_the_last_request():
    again = "Always answer in English please"
    built = talk(after={1: user(again), 4: model(f"as you said: {again}")})
    counts = (80_000, 81_000, 9_000, 10_000, 11_000, 12_000)
    calls = tuple(replace(call, prompt_tokens=count) for call, count in zip(built.calls, counts, strict=True))
    fell = replace(built, calls=calls)
    lanes = search(fell, Snippet("rule", RULE, 0), Snippet("rule", again, 1)).lanes()
    assert [lane.unseen_from for lane in lanes] == [2, -1]
    assert (
        outcome_words(lanes[0]) == "unknown since the recorded prompt fell at step 3; no message has brought it again"
    )
    assert outcome_words(lanes[1]) == "in the last request"
    assert summary_words(lanes) == (
        "The words of 1 of 2 instructions are in the last request, 1 unknown since the recorded prompt fell."
    )
    (later,) = search(replace(fell, compactions=(compaction(6, (0, 1)),)), Snippet("rule", RULE, 0)).lanes()
    assert later.unseen_from == -1


def test_after_a_compaction_whose_removal_is_not_in_the_file_only_what_came_again_is_known_to_be_sent():
    again, quoted = ENGLISH, EUROS
    summary = (user(f"So far: {quoted}"),)
    blind = RecordedCompaction(4, Evidence.MATCHED, "summary", (Span(0, 4), Inserted(0)), summary)
    built = talk(blind, after={1: user(again), 2: user(quoted), 5: user(again)})
    rules = [Snippet("rule", text, event) for event, text in enumerate((RULE, again, quoted))]
    lanes = search(built, *rules).lanes()
    assert [(lane.unseen_from, lane.unseen_by) for lane in lanes] == [(3, 0), (-1, -1), (-1, -1)]
    assert outcome_words(lanes[0]) == (
        "unknown since compaction 1, as the file does not have what it removed; no message has brought it again"
    )
    assert lanes[0].state_words == "not known"
    assert worst_first(lanes)[0] is lanes[0]
    assert summary_words(lanes) == (
        "The words of 2 of 3 instructions are in the last request, 1 in a message that a compaction perhaps removed."
    )
    (later,) = search(replace(built, compactions=(blind, compaction(6, (0, 1)))), rules[0]).lanes()
    assert later.unseen_from == -1


def test_an_instruction_behind_a_negation_in_a_summary_is_not_quoted_there():
    ask = Snippet("request", "Migrate the database", 0)
    for said, is_denied in (("Do not migrate the database.", True), ("It is to migrate the database.", False)):
        assert ask.is_denied(said) == is_denied
        assert ask.is_in_other_words(said) != is_denied


def test_a_rule_is_withdrawn_from_the_message_on_that_takes_it_back_and_lost_only_before_it():
    events = [user(RULE), *(model("working on it") for _ in range(6))]
    events[4] = user("You may rename the column tenant in the billing tables again.")
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 2, 3, 5, 6))
    built = session(*events, calls=calls, compactions=(compaction(3, summary="Half is done."),))
    (snippet,) = instructions(built, enumerate(built.events))
    assert snippet.withdrawn_by == 4
    (lane,) = search(built, snippet).lanes()
    assert (lane.withdrawn_at, lane.lost, [change.step for change in lane.losses]) == (3, None, [2])
    assert outcome_words(lane) == "lost at step 3 (compaction 1), withdrawn with message 5 (step 4)"
    again = replace(built, events=(*events[:5], user(RULE), events[6]))
    assert [one.withdrawn_by for one in instructions(again, enumerate(again.events))] == [-1]
