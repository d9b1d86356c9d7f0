"""Requests of the user: quoted, looked for in every later request and summary, and the compaction that lost them."""

import pytest
from msgspec.structs import replace

from guard_core.checker import check, plain_words
from guard_core.events import Role, TextPart
from guard_core.facts.proposals import instructions
from guard_core.findings import Facts, recorded_findings, recorded_verdict, request_words
from guard_core.ledger import Ledger
from guard_core.own_words import typed_text, without_documents
from guard_core.recordings import read
from guard_core.sessions import ModelCall
from guard_core.views import Span
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, session, user
from tests.guard_core.findings.cases import compaction, of_replay, record, trace
from tests.guard_core.recordings.checks import SAMPLES as FILES

ASK = "Please rename the column tenant to workspace everywhere"


def talk(*compactions, after=(), ask=ASK):
    """One turn of six calls whose request is message 0; `after`: events by index that say something else."""
    events = [user(ask), *(model("working on it") for _ in range(6))]
    for index, event in dict(after).items():
        events[index] = event
    calls = tuple(ModelCall(step + 1, step + 1, 1_000 + 100 * step) for step in range(6))
    return session(*events, calls=calls, compactions=compactions)


def lost(built):
    """The findings of this kind."""
    return [item for item in recorded_findings(Facts.of(built)) if item.kind == "request_lost"]


def test_a_request_that_nothing_quotes_any_more_is_lost():
    (finding,) = lost(talk(compaction(3)))
    assert (finding.severity, finding.step) == ("warning", 2)
    assert (
        finding.sentence
        == f'Your request "{ASK}" left the context at step 3 (compaction 1); nothing has quoted it verbatim since.'
    )
    assert finding.numbers["quote"] == ASK
    assert (finding.numbers["message"], finding.numbers["compaction"], finding.numbers["quoted_by"]) == (0, 0, [])
    steps = [finding.numbers[name] for name in ("last_step_verbatim", "first_absent", "last_absent")]
    assert steps == [1, 2, 5]


def gone_on(words, *compactions, ask=ASK, between=()):
    """A turn of three calls, perhaps another one, and one of four calls that a message of these words began."""
    first = [user(ask), *(model("working on it") for _ in range(3))]
    events = [*first, *between, user(words), *(model("done a bit more") for _ in range(4))]
    ats = [at for at, event in enumerate(events) if event.role is Role.MODEL]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in ats)
    return session(*events, calls=calls, compactions=compactions)


@pytest.mark.parametrize(
    "words",
    [
        *("continue", "OK, go on!", "Bitte weiter", "继续", "<feedback>\ncontinue\n</feedback>"),
        "You can change config.yaml now. Continue.",
    ],
)
@pytest.mark.parametrize("at", [4, 5, 7])
def test_a_request_is_lost_too_where_the_user_only_said_to_go_on_with_it(words, at):
    built = gone_on(words, compaction(at, summary="Half is done."))
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["message"], finding.numbers["continued_by"]) == ("warning", 0, 4)
    assert finding.sentence == (
        f'Your request "{ASK}" left the context at step {max(at, 5) - 1} (compaction 1); nothing has quoted it '
        "verbatim since. Message 5 asks only to continue with it."
    )
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []


@pytest.mark.parametrize(
    ("words", "between"),
    [
        ("You can change config.yaml now.", ()),  # for whatever comes next
        ("Now continue with the manual of the importer", ()),  # a request of its own
        ("yes", ()),  # to whatever the agent asked
        ("Yes, please continue", ()),
        ("continue", (user("Now update the manual of the importer"), model("done"))),  # with another one
    ],
)
def test_a_request_that_was_over_is_not_missed_where_the_user_asks_for_something_else(words, between):
    assert not [
        item
        for item in lost(gone_on(words, compaction(5 + len(between), summary="Half is done."), between=between))
        if item.numbers["message"] == 0
    ]


def test_a_request_that_is_continued_is_kept_by_a_summary_that_quotes_it():
    (finding,) = lost(gone_on("continue", compaction(4, summary=f'The user: "{ASK}".')))
    assert finding.severity == "info"
    assert finding.sentence.endswith("the summary still quotes it. Message 5 asks only to continue with it.")


def test_what_an_agent_does_without_its_model_lies_between_a_request_and_its_continuation():
    compacted = user("<command-name>/compact</command-name>\n<command-args></command-args>")
    (finding,) = lost(gone_on("continue", compaction(5, summary="Half is done."), between=(compacted,)))
    assert (finding.numbers["message"], finding.numbers["continued_by"]) == (0, 5)


def test_a_rule_of_a_request_that_is_continued_is_lost_within_its_turn():
    ask = f"{ASK}. Never touch legacy.py by hand."
    built = gone_on("continue", compaction(4, summary=f'The user: "{ASK}".'), ask=ask)
    assert [item.kind for item in recorded_findings(Facts.of(built)) if "rule_lost" in item.kind] == ["rule_lost"]


def test_a_request_that_the_summary_still_quotes_is_only_noted():
    (finding,) = lost(talk(compaction(3, summary=f"The user said: {ASK}. Half is done.")))
    assert (finding.severity, finding.numbers["quoted_by"], finding.numbers["first_absent"]) == ("info", [0], -1)
    assert finding.sentence.endswith("the summary still quotes it.")


LONG = (
    "Please migrate the billing exporter to the new queue client, never touch the legacy adapters under vendor/legacy."
)


@pytest.mark.parametrize(
    ("ask", "summary", "shown"),
    [
        (LONG, 'The user: "Please migrate the billing exporter to the new queue client".', LONG[:59]),
        (f'"\\"{ASK}.\\""', f'The user wants "{ASK}", half is done', ASK),
        (f"{ASK}.", f'The user wants "{ASK}", half is done', ASK),
        (
            "请把计费导出器迁移到新的队列客户端，不要改动旧的适配器。",
            "用户要求“请把计费导出器迁移到新的队列客户端，不要改动旧的适配器”",
            "请把计费导出器迁移到新的队列客户端，不要",
        ),
    ],
)
def test_a_quotation_need_not_have_the_mark_at_the_end_nor_more_than_twenty_chinese_characters(ask, summary, shown):
    (finding,) = lost(talk(compaction(3, summary=summary), ask=ask))
    assert (finding.severity, finding.numbers["quote"]) == ("info", shown)
    assert finding.sentence.endswith(f"the summary still quotes {'it' if shown == ASK else 'its first words'}.")


@pytest.mark.parametrize(
    ("ask", "passage"),
    [
        (
            f"Please begin with the review of last week, then {LONG[7:].partition(',')[0]}.",
            "then migrate the billing exporter to the new queue client",
        ),
        (
            "10:00:00 ERROR build failed in module billing\n" * 90 + "why does the nightly build fail?",
            "why does the nightly build fail",
        ),
        ("请把计费导出器迁移到新的队列客户端，不要改动旧的适配器。", "请把计费导出器迁移到新的队列客户端"),
    ],
)
def test_a_summary_that_quotes_another_clause_is_said_to(ask, passage):
    built = talk(compaction(3, summary=f"The user’s words: “{passage}”"), ask=ask)
    (finding,) = lost(built)
    assert finding.severity == "info"
    assert "nothing has quoted its first words verbatim since." in finding.sentence
    assert finding.sentence.endswith(f'The summary quotes these words of it: "{passage}".')
    assert check(built, [finding], judge_session(built)) == []
    for lie in ("never touch the new adapters at all", "working on it"):
        assert check(built, [replace(finding, numbers={**finding.numbers, "passage": lie})], judge_session(built))


TASK = "Refactor the date parser into two modules"
HOUSE_RULE = "Never add a dependency to the project without asking me"


@pytest.mark.parametrize(
    ("ask", "quote", "rule"),
    [
        (LONG, LONG[:59], "never touch the legacy adapters under vendor/legacy"),
        (f"{TASK}. {HOUSE_RULE}.", f"{TASK}. Never add a", HOUSE_RULE),
        (f"{HOUSE_RULE}. {TASK}.", TASK, HOUSE_RULE),
        (
            "Bitte migriere die Rechnungen in die neue Tabelle. Lösche dabei niemals alte Datensätze.",
            "Bitte migriere die Rechnungen in die neue Tabelle. Lösche",
            "Lösche dabei niemals alte Datensätze",
        ),
    ],
)
def test_a_summary_that_keeps_a_rule_and_loses_the_task_is_a_warning(ask, quote, rule):
    built = talk(compaction(3, summary=f"Rules of the user: {rule}. Half is done."), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["quote"], finding.numbers["kept_rule"]) == ("warning", quote, rule)
    assert finding.sentence.endswith(
        f'since. The summary keeps the rule "{rule}", but quotes nothing of what was asked for.'
    )
    assert check(built, [finding], judge_session(built)) == []
    for lie in ("never touch the new adapters at all", TASK, ""):
        assert check(built, [replace(finding, numbers={**finding.numbers, "kept_rule": lie})], judge_session(built))


@pytest.mark.parametrize(
    ("ask", "summary"),
    [
        (LONG, f"Task: {LONG[7:59]}."),
        ("Could you port all scripts to the new shell?", "Goal: port all scripts to the new shell"),
        ("Bitte übersetze alle Seiten des Handbuchs.", "Aufgabe: übersetze alle Seiten des Handbuchs"),
        ("请把计费导出器迁移到新的队列客户端。", "任务：把计费导出器迁移到新的队列客户端"),
    ],
)
def test_a_summary_quotes_a_request_without_its_courtesy(ask, summary):
    built = talk(compaction(3, summary=summary), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["quoted_by"]) == ("info", [0])
    assert check(built, [finding], judge_session(built)) == []


def test_a_summary_that_says_the_task_in_other_words_and_drops_a_rule_is_only_noted():
    ask = f"{TASK} and split its test module as well. {HOUSE_RULE}."
    built = talk(compaction(3, summary="The date parser and its test module are refactored into two modules."), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info", True)
    assert check(built, [finding], judge_session(built)) == []


def test_a_request_of_rules_alone_is_kept_with_one_of_them():
    ask = f"{HOUSE_RULE}. Always run the linter before you commit anything."
    built = talk(compaction(3, summary="Always run the linter before you commit anything. Half is done."), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["kept_rule"]) == ("info", "")
    assert finding.numbers["passage"] == "Always run the linter before you commit anything"
    assert check(built, [finding], judge_session(built)) == []


def test_a_task_that_the_summary_quotes_is_no_loss_where_a_rule_came_first():
    built = talk(compaction(3, summary=f"The task: {TASK}."), ask=f"{HOUSE_RULE}. {TASK}.")
    (finding,) = lost(built)
    assert (finding.severity, finding.sentence.endswith("the summary still quotes it.")) == ("info", True)
    assert check(built, [finding], judge_session(built)) == []


@pytest.mark.parametrize("ask", ["1. Do A in a.py\n2. Do B in b.py", "a b c d e f g h i j k l m n o", "do it as I say"])
def test_a_verdict_has_room_for_a_request_of_many_short_words(ask):
    built = talk(compaction(2), compaction(3), compaction(5), ask=ask)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    verdict = recorded_verdict(facts, [item for item in claims if item.kind == "request_lost"])
    assert (verdict.kind, len(verdict.sentence.split()) <= 25) == ("request_lost", True)
    quoted = verdict.sentence.partition('"')[2].rpartition('"')[0]
    assert " ".join(ask.split()).startswith(quoted.removesuffix(" …"))


RESTATED = (
    "The user wants the billing exporter moved to the new queue client; "
    "legacy adapters in vendor/legacy are off limits, must not change."
)


def test_a_summary_that_says_it_in_other_words_is_said_to():
    built = talk(compaction(3, summary=f"1. Primary request: {RESTATED}\n2. Next: run the tests."), ask=LONG)
    (finding,) = lost(built)
    assert finding.severity == "info"
    assert finding.sentence.endswith(
        "nothing has quoted its first words verbatim since. The summary may say it in other words."
    )
    assert check(built, [finding], judge_session(built)) == []
    silent = talk(compaction(3, summary="Half of the exporter is done, and the tests pass."), ask=LONG)
    (warning,) = lost(silent)
    assert (warning.severity, warning.numbers["restated"]) == ("warning", False)
    assert check(silent, [replace(finding, step=warning.step)], judge_session(silent))


def test_a_summary_that_leaves_out_a_sentence_does_not_say_it_in_other_words():
    ask = f"{LONG} Write every changed file name into the release notes."
    (finding,) = lost(talk(compaction(3, summary=RESTATED), ask=ask))
    assert (finding.severity, finding.numbers["restated"]) == ("warning", False)


AND_THEN = f"{LONG} Write every changed file name into the release notes."


@pytest.mark.parametrize(
    ("first", "ask"), [(RESTATED, LONG), ("The user: Write every changed file name into the release notes", AND_THEN)]
)
def test_what_a_later_summary_no_longer_says_is_lost_there(first, ask):
    kept = talk(compaction(2, summary=first), compaction(4, summary=first), ask=ask)
    (finding,) = lost(kept)
    assert (finding.severity, finding.numbers["forgotten_by"]) == ("info", -1)
    forgotten = talk(compaction(2, summary=first), compaction(4, summary="almost done"), ask=ask)
    (lie, (finding,)) = (finding, lost(forgotten))
    assert (finding.severity, finding.step) == ("warning", 1)
    assert finding.sentence.endswith(" The summary of compaction 2 (step 4) no longer does.")
    for built, true, false in ((kept, lie, finding), (forgotten, finding, lie)):
        assert check(built, [true], judge_session(built)) == []
        assert check(built, [false], judge_session(built))


def typed(name: str, arguments: str = "") -> str:
    """A command as Claude Code writes it down."""
    name = f"<command-message>it is running…</command-message>\n<command-name>{name}</command-name>"
    return f"{name}\n<command-args>{arguments}</command-args>"


def test_a_command_with_arguments_is_quoted_as_it_was_typed():
    ask = typed("/review", "src/exporter.py for zero padding")
    built = talk(compaction(3, summary="The user ran /review src/exporter.py for zero padding."), ask=ask)
    (finding,) = lost(built)
    assert finding.sentence.startswith('Your request "/review src/exporter.py for zero padding" left the context')
    assert finding.sentence.endswith("the summary still quotes it.")
    assert check(built, [finding], judge_session(built)) == []
    (forgotten,) = lost(talk(compaction(3), ask=ask))
    assert (forgotten.severity, forgotten.step) == ("warning", 2)


@pytest.mark.parametrize("ask", [typed("/model"), "<bash-input>git status --short --branch</bash-input>"])
def test_what_is_done_without_the_model_is_no_request(ask):
    assert lost(talk(compaction(3), ask=ask)) == []


def test_a_short_clause_in_a_summary_is_no_quotation():
    (finding,) = lost(talk(compaction(3, summary="Now run the tests."), ask=f"{LONG} Then run the tests."))
    assert (finding.severity, finding.numbers["passage"]) == ("warning", "")


def test_the_compaction_that_drops_the_quotation_is_blamed_and_not_the_one_that_made_it():
    (finding,) = lost(talk(compaction(3, summary=f"Task: {ASK}"), compaction(5, summary="almost done")))
    assert (finding.numbers["compaction"], finding.numbers["compactions"], finding.numbers["quoted_by"]) == (
        1,
        [0, 1],
        [0],
    )
    assert finding.step == 4
    assert finding.sentence.endswith("nothing has quoted it verbatim since. Compaction 1 still quoted it.")


@pytest.mark.parametrize(
    ("summaries", "blamed"),
    [(("nothing of it", "nothing"), 0), ((f"Task: {ASK}", "nothing"), 1), (("nothing", f"Task: {ASK}", "nothing"), 2)],
)
def test_of_compactions_between_the_same_two_calls_the_one_that_lost_it_is_blamed(summaries, blamed):
    built = talk(*(compaction(3, summary=summary) for summary in summaries))
    (finding,) = lost(built)
    assert (finding.numbers["compaction"], finding.numbers["compactions"]) == (blamed, list(range(len(summaries))))
    assert f"left the context at step 3 (compaction {blamed + 1})" in finding.sentence
    assert check(built, [finding], judge_session(built)) == []
    for other in set(range(len(summaries))) - {blamed}:
        lie = replace(finding, numbers={**finding.numbers, "compaction": other})
        assert check(built, [lie], judge_session(built))


def test_a_compaction_that_brings_the_request_back_before_any_call_loses_nothing():
    assert lost(talk(compaction(3), compaction(3, (0, 1)))) == []


def test_white_space_is_folded_before_words_are_compared():
    assert lost(talk(compaction(3, summary=f"Task:\n  {ASK.replace(' ', chr(10))}")))[0].severity == "info"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("Please rename the column Tenant to Workspace", "please rename the column tenant to WORKSPACE"),
        ('Set it to "on" for all of the workers', "Set it to “on” for all of the workers"),
        ("Don't touch the tests of the parser", "Don’t touch the tests of the parser"),
        ("Fix pages 3-5 - and nothing else, please", "Fix pages 3–5 — and nothing else, please"),
        ("Fix pages 3--5 and nothing else, please", "Fix pages 3—5 and nothing else, please"),
        ("Wait for the build... then run the tests", "Wait for the build… then run the tests"),
        ("Write «hello» into the file, please", "Write 'hello' into\n\u00a0the  file, please"),
        ("Never rename the column tenant_id", "**Never** rename the _column_ `tenant_id`"),
        ('Call it "on", and add a test for it', 'Call it \\"on\\", and add a test for it'),
        ("Don't call it <b>, call it strong", "Don&#39;t call it &lt;b&gt;, call it \\u0073trong"),
        ("Write to C:\\new\\table in the folder", "Write to C:\\\\new\\\\table in the folder"),
        ("Rename 2*a*b and **kwargs in __init__", "> **Rename 2*a*b and \\*\\*kwargs in __init__**"),
    ],
)
def test_a_quotation_in_other_letters_and_typography_is_one(ask, said):
    for request, summary in ((ask, said), (said, ask)):
        built = talk(compaction(3, summary=f"The user asked: {summary}"), ask=request)
        (finding,) = lost(built)
        assert (finding.severity, finding.numbers["quoted_by"]) == ("info", [0])
        assert check(built, [finding], judge_session(built)) == []


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("Keep the names, and add a test for it", "> Keep the names,\n> and add a\n>> test for it"),
        ("Keep the names, and add a test for it", "&gt; Keep the names,\n&gt; and add a test for it"),
        ("Keep the names, and add a test for it", "1. ***Keep* the names**, and add a __test for it__"),
        ("Keep the names,\nand add a test for it", '{"task": "Keep the names,\\nand add a test for it"}'),
        ('Don\'t change the "public API" -- keep it', '1. **Don\'t change** the `"public API"` -- keep it'),
    ],
)
def test_a_quotation_with_marks_and_escapes_around_its_words_is_one(ask, said):
    built = talk(compaction(3, summary=f"The user asked:\n{said}"), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["quoted_by"]) == ("info", [0])
    assert check(built, [finding], judge_session(built)) == []


@pytest.mark.parametrize(
    ("said", "is_restated"),
    [
        (ASK.replace("column", "row"), True),
        (ASK.replace("column", "column, not the"), True),
        ("**", False),
        ("> ", False),
    ],
)
def test_a_request_in_other_words_is_not_quoted(said, is_restated):
    (finding,) = lost(talk(compaction(3, summary=said)))
    assert (finding.numbers["quoted_by"], finding.numbers["restated"]) == ([], is_restated)


@pytest.mark.parametrize(
    ("said", "is_restated"),
    [
        ("Goal: dark mode. It is being added to the theme.", True),
        ("Goal: a mode for printing. Files were read.", False),
    ],
)
def test_a_short_request_is_said_by_a_passage_with_each_of_its_words(said, is_restated):
    built = talk(compaction(3, summary=said), ask="Add a dark mode. Thanks!")
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info" if is_restated else "warning", is_restated)
    assert check(built, [finding], judge_session(built)) == []
    lie = replace(finding, numbers={**finding.numbers, "restated": not is_restated})
    assert check(built, [lie], judge_session(built))


@pytest.mark.parametrize(
    ("ask", "quote"),
    [
        (f"{ASK}\n\n```python\n# You must never call this twice.\ndef f(): ...\n```", ASK),
        (f"{ASK}\nError: the config must be a file, never a folder. At line 5.", ASK),
        (f"Never push to the main branch\n{ASK}\n\nThanks!", ASK),
    ],
    ids=["code below", "output below", "a rule without a full stop above"],
)
def test_a_request_is_known_by_its_first_line_whatever_stands_below_or_above_it(ask, quote):
    built = talk(compaction(3), ask=ask)
    (finding,) = lost(built)
    assert finding.numbers["quote"].startswith(quote)
    assert check(built, [finding], judge_session(built)) == []


@pytest.mark.parametrize(
    ("ask", "said", "is_restated"),
    [
        ("Fix the flaky tests", "State: fixing flakiness of the test suite.", True),
        ("Migrate the database", "Goal: a database migration. No table is ready yet.", True),
        ("Rename two columns, please", "Two columns are being renamed.", True),
        ("Deploy it to staging", "The deployment to staging is under way.", True),
        ("Почини тесты парсера", "Цель: починить тест парсеров.", True),
        ("Fix the flaky tests", "State: the test suite was read, and the flakes of snow fall.", False),
        ("Migrate the database", "Goal: the database of migrants is to be read.", False),
    ],
)
def test_a_short_request_is_said_in_inflected_words_too(ask, said, is_restated):
    built = talk(compaction(3, summary=said), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info" if is_restated else "warning", is_restated)
    assert check(built, [finding], judge_session(built)) == []


MIGRATE = "Migrate the database"


@pytest.mark.parametrize(
    ("said", "severity"),
    [
        ("Do not migrate the database. Tables were read.", "warning"),
        ("Never migrate the database!", "warning"),
        ("The database must not be migrated. Tables were read.", "warning"),
        ("The user decided against migrating the database.", "warning"),
        ("Migrate the database; do not migrate the database of the archive.", "info"),
        ("The database was not migrated yet.", "info"),
        ("Migrating the database is half done. Do not commit yet.", "info"),
    ],
)
def test_a_summary_that_forbids_a_request_does_not_say_it(said, severity):
    built = talk(compaction(3, summary=said), ask=MIGRATE)
    (finding,) = lost(built)
    assert finding.severity == severity
    assert check(built, [finding], judge_session(built)) == []
    (other,) = lost(talk(compaction(3, summary=f"{MIGRATE} now." if severity == "warning" else "Read."), ask=MIGRATE))
    assert check(built, [other], judge_session(built))


def test_a_summary_that_demands_what_a_rule_forbids_does_not_keep_the_rule():
    ask = f"{PORT} Do not migrate the database."
    assert rules_lost(talk(compaction(3, summary=f"{PORT}\nNext: Migrate the database."), ask=ask))
    assert not rules_lost(talk(compaction(3, summary=f'"{PORT}" Next: tests, no migrating of the database.'), ask=ask))


FIX, UPDATE = "Fix the flaky parser test.", "Then update the manual of the importer."


def parts_lost(built):
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    return [item for item in claims if item.kind == "part_lost"]


def test_of_two_requests_in_one_message_the_one_that_a_summary_drops_is_named():
    built = talk(compaction(3, summary=f'The user: "{FIX}" Half is done.'), ask=f"{FIX} {UPDATE}")
    (finding,) = parts_lost(built)
    assert (finding.severity, finding.step, finding.count) == ("warning", 2, 1)
    assert finding.sentence == (
        f'Of your request (message 1), "{UPDATE}" left the context at step 3 (compaction 1), while another part '
        "stayed: up to step 6, the end of that turn, no request quotes it, and no summary paraphrases it."
    )
    facts = Facts.of(built)
    assert recorded_verdict(facts, recorded_findings(facts)).sentence == (
        '1 compaction; of your request, "Then update the manual of …" left the context at step 3; no later request of '
        "the turn quotes it."
    )


@pytest.mark.parametrize(
    ("summary", "after"),
    [
        (f'"{FIX}" Half is done.', {4: model(f"Next: {UPDATE}")}),
        (f'"{FIX}" Next: the manual of the importer is to be updated.', {}),
        ("All went well so far.", {}),  # the whole request is lost
        ("The flaky parser test is being fixed; then the importer's manual gets an update.", {}),
    ],
)
def test_a_part_that_is_said_again_or_lost_with_the_rest_is_no_finding_of_its_own(summary, after):
    assert parts_lost(talk(compaction(3, summary=summary), after=after, ask=f"{FIX} {UPDATE}")) == []


def test_a_document_in_a_message_is_no_list_of_requests():
    topics = ("ants", "bees", "cats", "dogs", "elks")
    ask = " ".join([FIX, *(f"Add the chapter on {topic} to the manual." for topic in topics)])
    assert parts_lost(talk(compaction(3, summary=f'"{FIX}" Half is done.'), ask=ask)) == []


PORT = "Please port the importer to the new reader."
ON_LEGACY, ON_TESTS = "You must never touch the file legacy.py.", "Always run the linter before a commit."


def rules_lost(built):
    """The findings of this kind, which the checker confirms."""
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    return [item for item in claims if item.kind == "rule_lost"]


def test_a_rule_that_a_summary_leaves_out_while_it_has_the_task_is_lost():
    built = talk(compaction(3, summary=f'The user: "{PORT}" Half is done.'), ask=f"{PORT} {ON_LEGACY}")
    (finding,) = rules_lost(built)
    assert (finding.severity, finding.step, finding.count) == ("warning", 2, 1)
    assert finding.sentence == (
        f'Your rule "{ON_LEGACY}" (message 1) left the context at step 3 (compaction 1), while the task stayed: up to '
        "step 6, the end of that turn, no request quotes it, and no summary paraphrases it."
    )
    facts = Facts.of(built)
    assert recorded_verdict(facts, recorded_findings(facts)).sentence == (
        f'1 compaction; your rule "{ON_LEGACY}" left the context at step 3; no later request of the turn quotes it.'
    )


@pytest.mark.parametrize(
    ("summary", "after"),
    [
        (f'The user: "{PORT}" Rule: you must never touch the file legacy.py', {}),
        (f'The user: "{PORT}" The file legacy.py must never be touched, by the way.', {}),
        (f'The user: "{PORT}"', {5: model(f"You said: {ON_LEGACY} So I do not.")}),  # it is back in the last request
        ("Half of the tests pass.", {}),  # the request is lost, and the finding of that says so
    ],
)
def test_a_rule_that_is_said_again_or_lost_with_its_request_is_no_finding_of_its_own(summary, after):
    assert rules_lost(talk(compaction(3, summary=summary), after=after, ask=f"{PORT} {ON_LEGACY}")) == []


BOTH = "Never edit the vendored files by hand and always run the linter before committing."
BY_HAND = "Bearbeite die Parserdateien nie von Hand und führe den Linter über alle Module aus."
RUSSIAN = "Никогда не правь файлы парсера вручную и запускай линтер перед каждым коммитом."
EXCEPT = "Never push to the main branch unless the release manager agrees."


@pytest.mark.parametrize(
    ("rule", "said", "is_lost"),
    [
        (BOTH, "Editing the vendored files by hand is forbidden.", True),
        (BOTH, "Run the linter before each commit.", True),
        (BOTH, "Editing vendored files by hand is forbidden; the linter runs before each commit.", False),
        (EXCEPT, "No pushing to the main branch.", True),
        (EXCEPT, "No pushing to the main branch without the release manager's agreement.", False),
        (BY_HAND, "Parserdateien nie von Hand bearbeiten.", True),
        (BY_HAND, "Parserdateien nie von Hand bearbeiten. Den Linter über alle Module führen.", False),
        (RUSSIAN, "Файлы парсера вручную не править.", True),
        (RUSSIAN, "Файлы парсера вручную не править. Линтер запускать перед каждым коммитом.", False),
    ],
)
def test_a_rule_of_which_a_summary_says_one_half_alone_is_lost(rule, said, is_lost):
    built = talk(compaction(3, summary=f'The user: "{PORT}" {said}'), ask=f"{PORT} {rule}")
    found = rules_lost(built)
    assert [item.numbers["rule"] for item in found] == ([rule] if is_lost else [])
    for finding in found:
        assert finding.sentence.endswith("no request quotes it, and no summary paraphrases all of it.")
        lie = replace(finding, sentence=finding.sentence.replace("all of it", "it"))
        assert check(built, [lie], judge_session(built))


def test_the_verdict_on_a_lost_rule_has_room_for_the_mark_behind_its_words():
    """Of a rule of so many words one more is left out, for the mark counts as a word."""
    rule = "Always run the whole linter over each file, by hand, before."
    facts = Facts.of(talk(compaction(3, summary=f'The user: "{PORT}"'), ask=f"{PORT} {rule}"))
    sentence = recorded_verdict(facts, recorded_findings(facts)).sentence
    assert len(sentence.split()) == 25
    assert 'rule "Always run the whole linter over …"' in sentence


def test_a_message_of_rules_alone_has_no_task_that_stays():
    assert rules_lost(talk(compaction(3, summary=ON_TESTS), ask=f"{ON_LEGACY} {ON_TESTS}")) == []


def test_the_compaction_that_lost_the_rule_is_named_and_others_are_counted():
    kept = compaction(2, summary=f"{PORT} {ON_LEGACY} {ON_TESTS}")
    built = talk(kept, compaction(4, summary=PORT), ask=f"{PORT} {ON_LEGACY} {ON_TESTS}")
    (finding,) = rules_lost(built)
    assert (finding.step, finding.numbers["compaction"], finding.count) == (3, 1, 2)
    assert finding.sentence.endswith("The same holds for 1 more rule of that message.")


@pytest.mark.parametrize(
    ("task", "rule", "between"),
    [
        (PORT, "Use four spaces, never tabs.", " "),  # "never tabs" says little by itself
        (PORT, "When you commit, never use --no-verify.", " "),
        ("Please port the importer", "never touch legacy.py.", ", but "),
        ("Please port the importer to the new reader", "never touch legacy.py.", " and "),
        ("Bitte portiere den Importer", "rühre legacy.py niemals an.", ", aber "),
        ("请把计费导出器迁移到新的队列客户端", "不要改动旧的适配器。", "，"),
    ],
)
def test_a_rule_in_one_sentence_with_a_wish_is_lost_alone(task, rule, between):
    (finding,) = rules_lost(talk(compaction(3, summary=f'The user: "{task}".'), ask=f"{task}{between}{rule}"))
    assert (finding.numbers["rule"], finding.severity) == (rule, "warning")


@pytest.mark.parametrize(
    "ask",
    [
        f"{PORT} It only works with ASCII now.",
        "Please port the importer, it always fails without the config file.",
        f"{PORT} The server can't start without its configuration.",
    ],
)
def test_what_always_happens_is_no_rule_of_the_user(ask):
    assert rules_lost(talk(compaction(3, summary=f'"{PORT}" Please port the importer. Done by half.'), ask=ask)) == []


@pytest.mark.parametrize("said", ["legacy.py must not be touched", "No touching of legacy.py"])
def test_a_short_rule_all_of_whose_words_a_summary_has_is_not_called_lost(said):
    ask = f"{PORT} Never touch legacy.py."
    assert rules_lost(talk(compaction(3, summary=f'"{PORT}" {said}.'), ask=ask)) == []
    assert rules_lost(talk(compaction(3, summary=f'"{PORT}" Half is done.'), ask=ask)) != []


def test_a_rule_that_a_summary_lifts_is_not_kept_by_it():
    ask = f"{PORT} Never touch legacy.py."
    (finding,) = rules_lost(talk(compaction(3, summary=f'"{PORT}" The user allowed touching legacy.py.'), ask=ask))
    assert finding.severity == "warning"


def test_a_rule_that_the_system_prompt_has_too_is_in_every_request():
    ask = f"{PORT} {ON_LEGACY}"
    built = talk(compaction(3, summary=f'The user: "{PORT}" Half is done.'), ask=ask)
    assert rules_lost(built) != []
    assert rules_lost(replace(built, system=(TextPart(f"You are careful. {ON_LEGACY}"),))) == []


def later_turns(first, *compactions):
    """A turn that states rules, one more, and a long one in which the compactions are."""
    events = [user(first), model("ok"), user("Read the file a.py"), model("read")]
    events += [user("Please port the importer to the new reader."), *(model(f"step {number}") for number in range(6))]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 3, 5, 6, 7, 8, 9, 10))
    return session(*events, calls=calls, compactions=compactions)


def earlier_lost(built):
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    return [item for item in claims if item.kind == "earlier_rule_lost"]


def test_a_rule_of_an_earlier_turn_that_no_later_request_has_is_lost():
    built = later_turns("Use four spaces, never tabs.", compaction(7, summary=f"{PORT} Half is done."))
    (finding,) = earlier_lost(built)
    assert (finding.severity, finding.step, finding.count, finding.numbers["message"]) == ("warning", 4, 1, 0)
    assert finding.sentence == (
        'Your rule "Use four spaces, never tabs." (message 1) left the context at step 5 (compaction 1), in a later '
        "turn: no request since quotes it, and no summary paraphrases it."
    )
    facts = Facts.of(built)
    assert recorded_verdict(facts, recorded_findings(facts)).sentence == (
        '1 compaction; your earlier rule "Use four spaces, never tabs." left the context at step 5; no later request '
        "quotes it."
    )


def test_the_second_compaction_is_named_where_the_first_kept_the_rule():
    kept = compaction(6, summary="Rules: use four spaces, never tabs. The importer is being ported.")
    (finding,) = earlier_lost(later_turns("Use four spaces, never tabs.", kept, compaction(9, summary=PORT)))
    assert (finding.step, finding.numbers["compaction"]) == (6, 1)


@pytest.mark.parametrize(
    ("first", "summary"),
    [
        ("Use four spaces, never tabs.", f"{PORT} The user wants four spaces and no tabs."),
        ("Always answer in French from now on.", f"{PORT} The user wants every answer in French."),
        ("Use four spaces, never tabs.", "Der Importer wird auf den neuen Leser portiert, das ist zur Hälfte fertig."),
        ("Add a test that works without network access.", f"{PORT} Half is done."),  # a task of its turn
        ("The tests only pass on Linux.", f"{PORT} Half is done."),
    ],
)
def test_what_a_summary_may_say_or_was_a_task_is_no_lost_rule(first, summary):
    assert earlier_lost(later_turns(first, compaction(7, summary=summary))) == []


def test_a_rule_that_does_not_say_that_it_holds_on_is_a_note_and_leads_no_verdict():
    built = later_turns("Only touch files below the folder billing.", compaction(7, summary=f"{PORT} Half is done."))
    (finding,) = earlier_lost(built)
    assert (finding.severity, "It does not say whether it applies to later turns." in finding.sentence) == (
        "info",
        True,
    )
    facts = Facts.of(built)
    assert recorded_verdict(facts, recorded_findings(facts)).kind != "earlier_rule_lost"


ON_TOUCHING = "Never touch the tests below the folder unit."


@pytest.mark.parametrize(
    ("second", "is_lost"),
    [
        ("Read the file a.py", True),
        ("You may touch the tests below the folder unit again.", False),
        ("Forget the rule about the tests below the folder unit.", False),
        ("The tests below the folder unit may now be touched. Read the file a.py.", False),
        ("You may touch the tests below the folder unit this time.", True),
        ("You may touch the tests below the folder unit again if they fail.", True),
        ("May you touch the tests below the folder unit again?", True),
        ("You may not touch the tests below the folder unit again.", True),
    ],
)
def test_a_rule_that_the_user_took_back_before_it_left_the_context_is_not_lost(second, is_lost):
    built = later_turns(ON_TOUCHING, compaction(7, summary=f"{PORT} Half is done."))
    built = replace(built, events=(*built.events[:2], user(second), *built.events[3:]))
    assert any(item.numbers["message"] == 0 for item in earlier_lost(built)) == is_lost


ON_TOUCHING_AGAIN = "You may touch the tests below the folder unit again."


@pytest.mark.parametrize(
    "ask", [f"{PORT} {ON_TOUCHING} Wait: {ON_TOUCHING_AGAIN}", f"{ON_TOUCHING} {ON_TOUCHING_AGAIN} {PORT}"]
)
def test_a_rule_that_its_own_message_takes_back_is_not_lost(ask):
    built = talk(compaction(3, summary=f'"{PORT}" Half is done.'), ask=ask)
    assert rules_lost(built) == []
    assert [item.severity for item in lost(built)] == ["info"]


def test_a_rule_that_its_own_message_takes_back_and_states_again_is_lost():
    ask = f"{PORT} {ON_TOUCHING} {ON_TOUCHING_AGAIN} No, sorry! {ON_TOUCHING}"
    (finding,) = rules_lost(talk(compaction(3, summary=f'"{PORT}" Half is done.'), ask=ask))
    assert finding.numbers["rule"] == ON_TOUCHING


@pytest.mark.parametrize("words", [ON_TOUCHING_AGAIN, "Forget the rule about the tests below the folder unit. Thanks!"])
def test_a_message_that_only_takes_a_rule_back_is_no_request_that_can_be_lost(words):
    built = gone_on(words, compaction(7, summary="Half is done."), ask=f"{PORT} {ON_TOUCHING}")
    assert lost(built) == []
    (claim,) = lost(gone_on("Update the manual of the importer", compaction(7, summary="Half."), ask=PORT))
    lie = replace(claim, numbers={**claim.numbers, "quote": words.partition(".")[0]})
    assert (
        check(built, [lie], judge_session(built))[0].reason == "the message only takes rules back, and asks for nothing"
    )


def test_a_message_that_takes_a_rule_back_and_asks_for_something_is_a_request():
    words = f"{ON_TOUCHING_AGAIN} Update the manual of the importer."
    (finding,) = lost(gone_on(words, compaction(7, summary="Half is done."), ask=f"{PORT} {ON_TOUCHING}"))
    assert (finding.severity, finding.numbers["message"]) == ("warning", 4)


def test_a_rule_that_the_user_took_back_after_it_left_the_context_was_lost_in_between():
    built = later_turns(ON_TOUCHING, compaction(7, summary=f"{PORT} Half is done."))
    events = (*built.events[:9], user("You may touch the tests below the folder unit again."), built.events[10])
    (finding,) = earlier_lost(replace(built, events=events))
    assert finding.step == 4


def test_rules_of_several_turns_are_one_finding_the_gravest_first():
    built = later_turns("Only touch files below the folder billing.", compaction(7, summary="Half is done."))
    events = [*built.events[:2], user("Never push to the branch main."), *built.events[3:]]
    (finding,) = earlier_lost(replace(built, events=tuple(events)))
    assert (finding.numbers["rule"], finding.count) == ("Never push to the branch main.", 2)
    assert finding.sentence.endswith("The same holds for 1 more rule of earlier turns.")


def test_more_messages_with_rules_than_are_searched_are_at_least_so_many():
    said = [user(f"Never edit the generated file number{number}.py by hand.") for number in range(21)]
    events = [event for message in said for event in (message, model("ok"))]
    ats = [*range(1, 42, 2), 43, 44]
    events += [user("Please port the importer to the new reader."), model("begun"), model("done")]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in ats)
    (finding,) = earlier_lost(session(*events, calls=calls, compactions=(compaction(44, summary="Half is done."),)))
    assert (
        finding.count,
        finding.sentence.endswith("The same holds for at least 19 more rules of earlier turns."),
    ) == (
        20,
        True,
    )


TIDES = "日本の港の潮位データを集計して、表にしてください。"


@pytest.mark.parametrize(
    ("ask", "said", "may_say"),
    [
        (TIDES, "The user wants the tide levels of Japanese harbours aggregated into a table.", True),
        (TIDES, "テストは全部通りました。次は文書を書きます。コードの整理も終わりました。", False),
        (TIDES, "Done.", False),  # too short to say it
        (f"{TASK} today", "用户希望把日期解析器拆分成两个模块，并且为每个模块补充相应的测试用例和文档说明。", True),
    ],
)
def test_a_summary_in_another_script_may_say_the_request(ask, said, may_say):
    """Words are compared: those of a translation are not found, which says nothing of what the summary says."""
    built = talk(compaction(3, summary=said), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info" if may_say else "warning", may_say)
    assert finding.sentence.endswith(" The summary may say it in other words.") == may_say
    assert check(built, [finding], judge_session(built)) == []


GERMAN = "Behebe bitte den Fehler im Parser, und schreib einen Test für die leere Zeile."
ENGLISH = "Fix the bug in the parser, and write a test for the empty line."


@pytest.mark.parametrize(
    ("ask", "said", "may_say"),
    [
        (GERMAN, "The user wants a repair of how blank input is read, with coverage of it. It is half done.", True),
        (ENGLISH, "Der Nutzer will eine Reparatur des Einlesens mit einer Prüfung. Das ist zur Hälfte erledigt.", True),
        (ENGLISH, "Le format du rapport est changé, et les tableaux sont dans un module qui leur est propre.", True),
        (ENGLISH, "The layout of the report was changed, and the tables are in a module of their own.", False),
        (GERMAN, "Das Layout des Berichts ist anders, und die Tabellen sind nun in einem eigenen Modul.", False),
        (ENGLISH, "Das ist gut.", False),  # too short to say it
        (ENGLISH, "refactor(report): layout, tables, module, docs, index, toc; docs/report.md, src/tables.py", False),
    ],
)
def test_a_summary_in_another_language_of_the_same_script_may_say_the_request(ask, said, may_say):
    built = talk(compaction(3, summary=said), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info" if may_say else "warning", may_say)
    assert check(built, [finding], judge_session(built)) == []


BEFORE = (
    "This session is being continued from another conversation that ran out of context. The summary below covers the "
    "earlier portion of it."
)
BEHIND = "Continue with the last task that you were asked to work on. Do not ask the user any further questions."


@pytest.mark.parametrize(
    ("ask", "said", "may_say"),
    [
        (
            ENGLISH,
            "Der Nutzer will eine Reparatur des Einlesens mit einer Prüfung.\nDas ist zur Hälfte erledigt.",
            True,
        ),
        (ENGLISH, "Le format du rapport est changé.\nLes tableaux sont dans un module qui leur est propre.", True),
        (ENGLISH, "The layout of the report was changed.\nThe tables are in a module of their own.", False),
        (ENGLISH, "The report fails with: der Ordner ist nicht da.", False),  # a message of a program
        (GERMAN, "Das Layout des Berichts ist anders, und die Tabellen sind nun in einem eigenen Modul.", False),
    ],
)
def test_a_summary_in_another_language_than_its_client_writes_around_it_may_say_the_request(ask, said, may_say):
    built = talk(compaction(3, summary=f"{BEFORE}\n\nSummary:\n{said}\n\n{BEHIND}"), ask=ask)
    (finding,) = lost(built)
    assert (finding.severity, finding.numbers["restated"]) == ("info" if may_say else "warning", may_say)
    assert check(built, [finding], judge_session(built)) == []


def test_a_request_that_is_kept_verbatim_is_not_lost():
    assert lost(talk(compaction(3, (0, 1)))) == []


def test_a_kept_message_that_quotes_the_request_keeps_it():
    (finding,) = lost(talk(compaction(4, (2, 4)), after={3: model(f"You asked: {ASK}. I begin.")}))
    assert finding.severity == "info"
    assert finding.sentence.endswith("other messages quote it.")


def test_the_same_words_in_an_earlier_message_that_is_kept_are_still_there():
    events = [user(ASK), model("done"), user(ASK), *(model("again") for _ in range(4))]
    calls = tuple(ModelCall(at, at, 1_000) for at in (1, 3, 5, 6))
    (finding,) = lost(session(*events, calls=calls, compactions=(compaction(4, (0, 1)),)))
    assert (finding.severity, finding.numbers["first_absent"]) == ("info", -1)
    assert finding.sentence.endswith("other messages quote it.")


def test_an_edit_after_the_compaction_that_quoted_it_is_blamed():
    built = talk(compaction(3, summary=f"Task: {ASK}"), compaction(4, kind="edit", summary="so far so good"))
    (finding,) = lost(built)
    assert (finding.numbers["compaction"], finding.numbers["by_edit"], finding.step) == (0, True, 3)
    assert "left the context at step 4 (an edit of the history after compaction 1); nothing" in finding.sentence
    assert check(built, [finding], judge_session(built)) == []
    assert check(built, [replace(finding, numbers={**finding.numbers, "by_edit": False})], judge_session(built))


def test_a_request_that_comes_up_again_was_missing_only_in_between():
    (finding,) = lost(talk(compaction(3), after={4: model(f"What was the task? {ASK}?")}))
    assert (finding.numbers["first_absent"], finding.numbers["last_absent"]) == (2, 3)
    assert "is missing from the requests of steps 3 to 4 (compaction 1)" in finding.sentence


def test_a_request_that_one_call_lacked_is_said_so_of_one():
    built = talk(compaction(3), after={3: model(f"What was the task? {ASK}?")})
    (finding,) = lost(built)
    assert finding.sentence.endswith("is missing from the request of step 3 (compaction 1).")
    verdict = recorded_verdict(Facts.of(built), (finding,))
    assert verdict.sentence.endswith("is missing from the request of step 3.")
    assert check(built, [finding], judge_session(built), verdict) == []


def test_a_sealed_summary_may_hold_it_so_nothing_is_claimed():
    (finding,) = lost(talk(compaction(3, kind="opaque", summary="")))
    assert (finding.severity, finding.numbers["sealed"]) == ("info", [0])
    assert "not readable" in finding.sentence


def test_behind_a_sealed_summary_the_first_readable_one_without_it_is_where_it_was_lost_at_the_latest():
    built = talk(compaction(3, kind="opaque", summary=""), compaction(5))
    (finding,) = lost(built)
    assert (finding.severity, finding.step, finding.numbers["compaction"], finding.numbers["sealed"]) == (
        "warning",
        4,
        1,
        [0],
    )
    assert (
        "left the context at step 5 (compaction 2) at the latest; nothing has quoted it verbatim since."
        in finding.sentence
    )
    assert finding.sentence.endswith("The summary of compaction 1, which may have had it, is not readable.")
    assert "left the context by step 5; nothing" in recorded_verdict(Facts.of(built), (finding,)).sentence
    assert check(built, [finding], judge_session(built)) == []
    assert check(built, [replace(finding, numbers={**finding.numbers, "at_latest": False})], judge_session(built))
    assert check(built, [replace(finding, numbers=finding.numbers | {"first_absent": 2})], judge_session(built))
    assert check(built, [replace(finding, severity="info")], judge_session(built))


def test_a_sealed_summary_of_a_history_without_it_cannot_hold_it():
    built = talk(compaction(3), compaction(5, kind="opaque", summary=""))
    (finding,) = lost(built)
    assert (finding.severity, finding.step, finding.numbers["compaction"], finding.numbers["sealed"]) == (
        "warning",
        2,
        0,
        [],
    )
    assert finding.sentence.endswith("left the context at step 3 (compaction 1); nothing has quoted it verbatim since.")
    assert check(built, [finding], judge_session(built)) == []


def test_a_request_answered_before_the_compaction_is_not_missed():
    events = [user(ASK), model("done"), user("Thank you, now write the tests"), model("here"), model("more")]
    calls = tuple(ModelCall(at, at, 1_000) for at in (1, 3, 4))
    assert lost(session(*events, calls=calls, compactions=(compaction(2),))) == []


def test_very_short_words_are_no_request_to_look_for():
    assert lost(talk(compaction(3), ask="go on")) == []


@pytest.mark.parametrize("wrapped", ["<task>\n{}\n</task>", "<user_message>\n{}"])
def test_a_request_is_quoted_without_the_tags_that_an_agent_put_around_it(wrapped):
    built = talk(compaction(3), ask=wrapped.format(ASK))
    (finding,) = lost(built)
    assert finding.numbers["quote"] == lost(talk(compaction(3), ask=ASK))[0].numbers["quote"]
    assert check(built, [finding], Facts.of(built).window) == []


def test_a_long_request_is_quoted_by_its_first_words():
    (finding,) = lost(talk(compaction(3), ask=ASK + " and then tell me which tests failed and why they did"))
    assert len(finding.numbers["quote"]) <= 60
    assert not finding.numbers["is_whole"]
    assert " …" in finding.sentence


def test_texts_are_read_only_where_a_request_was_removed():
    def unread():
        raise AssertionError("nobody needs these texts")
        yield

    built = talk(compaction(3, (0, 1)))
    assert request_words(built, Ledger.of(built), unread) == ()


def test_of_a_replay_only_the_message_itself_is_spoken_of():
    facts = Facts.of(talk())
    lost = of_replay(facts, trace(facts, record(2, kept_from=3)))["request_lost"]
    assert (lost.severity, lost.numbers["message"]) == ("info", 0)
    carried = trace(facts, record(2, carried=(Span(0, 1),), kept_from=3))
    assert "request_lost" not in of_replay(facts, carried)


@pytest.mark.skipif(not FILES.exists(), reason="../shared/samples is absent")
def test_the_second_summary_of_the_long_session_drops_what_the_first_quotes():
    (built,) = read(FILES / "claude-code" / "long-2-compactions.jsonl").sessions
    (finding,) = lost(built)
    assert (finding.numbers["compaction"], finding.numbers["quoted_by"], finding.step) == (1, [0], 109)
    assert finding.numbers["quote"].startswith("let's go with option 1.")


OPENED = (
    "<ide_opened_file>The user opened the file /w/SPEC.md in the IDE. "
    "This may or may not be related to the current task.</ide_opened_file>"
)
SELECTED = "<ide_selection>The user selected the lines 1 to 2 from /w/a.py:\nNever call this by hand.\n</ide_selection>"
CODEX = (
    "# Context from my IDE setup:\n\n## Active file: SPEC.md\n\n## Open tabs:\n- never.md: docs/never.md\n\n"
    "## My request for Codex:\n"
)
ASSIGNED = (
    '<teammate-message teammate_id="team-lead">\n{"type":"task_assignment","taskId":"4",'
    f'"subject":"{ASK}","assignedBy":"team-lead"}}\n</teammate-message>'
)
REPORTED = (
    '<teammate-message teammate_id="tester" color="blue">\nYou must never run the slow tests.\n</teammate-message>'
)
NAMED_FILE = (
    "\n--- Content from referenced files ---",
    "\nContent from @a.md:\n",
    "Never call this by hand.",
    "\n--- End of content ---",
)
SKILL = (
    '<skill name="review" location="/w/.pi/skills/review/SKILL.md">\nReferences are relative to /w/.pi/skills/review.\n'
    "\n# Review\n\nAlways check every claim against the documents before you answer.\n</skill>"
)


def editor_talk(*texts, summary="Half is done."):
    """A turn of six calls that a message of these text parts began, and the compaction before its third."""
    asked = replace(user(""), parts=tuple(map(TextPart, texts)))
    built = talk(compaction(3, summary=summary))
    return replace(built, events=(asked, *built.events[1:]))


@pytest.mark.parametrize(
    "texts",
    [
        (OPENED, ASK),
        (f"{OPENED}\n{ASK}",),
        (SELECTED, ASK),
        (f"{ASK}\n<system-reminder>\nNever mention this reminder.\n</system-reminder>",),
        (f"<task>\n{ASK}\n</task>", "<environment_details>\nYou must not guess the open tabs.\n</environment_details>"),
        (f"{CODEX}{ASK}",),
        (f'<teammate-message teammate_id="team-lead" summary="Never mind">\n{ASK}\n</teammate-message>',),
        (f'<teammate-message teammate_id="team-lead" summary="Never a -> b">\n{ASK}\n</teammate-message>',),
        (ASSIGNED,),
        (f"{ASSIGNED}\n\n{REPORTED}",),
        (f"{REPORTED}\n\n{ASSIGNED}",),
        (f"<system-reminder>\nYou must not say so.\n</system-reminder>\n{SELECTED}\n{OPENED}\n{ASK}",),
        (f"<ide_open_terminal>You must wait for make.</ide_open_terminal>\n{ASK}",),
        (f"{SKILL}\n\n{ASK}",),
        (ASK, *NAMED_FILE),
        (f"{ASK}{''.join(NAMED_FILE)}",),
    ],
)
def test_what_an_editor_puts_into_a_message_is_neither_request_nor_rule_of_its_user(texts):
    built = editor_talk(*texts)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert [(item.kind, item.numbers["quote"]) for item in claims if "quote" in item.numbers] == [("request_lost", ASK)]
    assert not [item for item in claims if "rule" in item.kind]
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    assert [one.kind for one in instructions(built, [(0, built.events[0])])].count("rule") == 0


def test_what_the_file_of_a_skill_says_is_no_rule_of_the_user_who_called_it():
    claims = recorded_findings(Facts.of(editor_talk(SKILL)))
    assert [item.numbers["quote"] for item in claims if "quote" in item.numbers] == ["/skill:review"]
    assert not [item for item in claims if "rule" in item.kind]


@pytest.mark.parametrize("texts", [(OPENED, ASK), (f"{CODEX}{ASK}",)])
def test_a_request_beside_what_an_editor_adds_is_kept_by_a_summary_that_quotes_it(texts):
    (finding,) = lost(editor_talk(*texts, summary=f'The user: "{ASK}".'))
    assert finding.severity == "info"
    assert finding.sentence.endswith("the summary still quotes it.")


TABS = CODEX.replace("- never.md: docs/never.md\n", "".join(f"- {at}.md: docs/{at}.md\n" for at in range(200)))


@pytest.mark.parametrize("texts", [(OPENED, "continue"), (f"{TABS}continue",)])
def test_a_user_who_only_says_to_go_on_does_so_with_a_file_open(texts):
    built = gone_on("continue", compaction(5, summary="Half is done."))
    events = list(built.events)
    events[4] = replace(events[4], parts=tuple(map(TextPart, texts)))
    built = replace(built, events=tuple(events))
    (finding,) = lost(built)
    assert (finding.numbers["message"], finding.numbers["continued_by"]) == (0, 4)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []


def test_a_message_that_has_only_what_an_editor_added_is_known_by_that():
    assert "The user opened the file" in lost(editor_talk(OPENED))[0].numbers["quote"]


@pytest.mark.parametrize(
    "text",
    [
        "Explain <system-reminder>x</system-reminder> to me, please",
        "<system-reminder>never closed",
        "# Notes\nNo request of Codex here",
        "ends with </system-reminder>",
    ],
)
def test_a_text_that_only_mentions_such_a_block_is_the_users_own(text):
    assert typed_text(text) == text


DOCUMENT = "Cells must be cooled before use.\nNever open the case of the converter.\nOnly trained staff may touch it."


@pytest.mark.parametrize(
    "asked",
    [
        f'{ASK}\n<document title="manual">\n{DOCUMENT}\n</document>',
        f"<file_content path='manual.md'>\n{DOCUMENT}\n</file_content>\n{ASK}",
        f'{ASK} Here it is: """\n{DOCUMENT}\n"""',
        "\n".join(["> " + line for line in DOCUMENT.split("\n")] + ["", ASK]),
    ],
)
def test_a_sentence_of_a_document_in_a_message_is_no_rule_of_its_user(asked):
    built = editor_talk(asked)
    facts = Facts.of(built)
    claims = recorded_findings(facts)
    assert not [item for item in claims if "rule" in item.kind]
    assert [item.numbers["quote"][:20] for item in claims if item.kind == "request_lost"] == [ASK[:20]]
    assert check(built, claims, facts.window, recorded_verdict(facts, claims)) == []
    assert not [one for one in instructions(built, [(0, built.events[0])]) if one.text in DOCUMENT]


@pytest.mark.parametrize("tag", ["coding-rules", "IMPORTANT", "project_conventions", "notes", "restrictions"])
def test_rules_in_a_tag_for_what_is_asked_are_those_of_the_user(tag):
    rule = "Never open the folder of the converter."
    built = editor_talk(f"{ASK}\n<{tag}>\n{rule}\n</{tag}>")
    assert [one.text for one in instructions(built, [(0, built.events[0])]) if one.kind == "rule"] == [rule]


def test_a_line_with_a_quotation_that_ends_a_document_in_tags_is_of_the_document():
    text = f'{ASK}\n<file path="a.py">\ndef cool():\n    """Never open the case."""</file>'
    assert without_documents(text) == ASK


TRACE = "\n    at parse (/app/lines.js:12:3)\n    at /app/main.js:40:9\n    at node:internal/main:5:1"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (f"It fails here: Error: Names should be unique.{TRACE}\nPlease fix it.", "It fails here:\nPlease fix it."),
        (f"Fix this.\nNames should be unique.{TRACE}", "Fix this.\n"),
        (f"TypeError: names should be unique{TRACE}", "TypeError:"),
        ("Meet me\n  at noon, never later.", "Meet me\n  at noon, never later."),
        ("Fix: x\n\u00a0 at parse (a.js:1:2)\n\u00a0 at b.js:4:9", "Fix:"),
    ],
)
def test_an_error_with_its_calls_is_no_words_of_the_user(text, own):
    assert without_documents(text) == plain_words.own_words(text) == own


def test_what_is_no_document_is_own_words():
    for text in ("a > b", "<b>never</b>\nx", '"""never"""', "<doc>\nnever closed", "> all of it is quoted"):
        assert without_documents(text) == typed_text(text) == text


@pytest.mark.parametrize("subject", ["[" * 2_000 + "]" * 2_000, "[" * 200_000 + "]" * 200_000, '["Fix it"]', "7", "{}"])
def test_an_assigned_task_without_words_is_taken_as_it_is_written(subject):
    """Of what is nested too deep, no version of Python reads the second."""
    task = f'{{"type":"task_assignment","taskId":"4","subject":{subject}}}'
    event = user(f'<teammate-message teammate_id="team-lead">\n{task}\n</teammate-message>')
    assert plain_words.typed(event) == [typed_text(event.parts[0].text)] == [task]


def test_what_an_agent_adds_behind_words_with_a_heading_is_not_typed():
    assert typed_text("# Notes\nRename it\n<system-reminder>x</system-reminder>") == "# Notes\nRename it"


def test_the_words_between_very_many_blocks_are_found():
    block = "<system-reminder>x</system-reminder> "
    assert typed_text(f"{block * 20_000}words{block * 20_000}") == "words"
