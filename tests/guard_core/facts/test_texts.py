"""Quotations and paraphrases: what counts as the same words, and what as enough of them."""

import pytest

from guard_core.facts.instructions import REQUEST, RULE, kind_of, rule_sentences
from guard_core.facts.proposals import details, instructions
from guard_core.facts.texts import (
    UNSPACED_FOUND,
    UNSPACED_OTHERS,
    UNSPACED_PAIRS,
    content_words,
    conveys,
    instructions_in,
    paraphrases,
    quotes,
    shared_words,
    split_sentences,
)
from guard_core.facts.texts import quotation as sought
from guard_core.quoting import readings
from tests.benchmarks.measure_paraphrase import best_cut, measured
from tests.builders import model, session, tool_call, user
from tests.guard_core.facts.paraphrases import UNSPACED
from tests.guard_core.facts.wordings import SENTENCES


@pytest.mark.parametrize(
    ("text", "quotation", "held"),
    [
        ("open port 80 only", "port 80", True),
        ("open port 8080 only", "port 80", False),
        ("see src/app.py, line 3", "src/app.py", True),
        ("see src/app.pyc", "src/app.py", False),
        ("my_name", "name", False),
        ("always use “tabs”", 'use "tabs"', True),
        ("请不要修改数据库", "不要修改", True),
        ("anything", "", False),
        ("> never push\n> to main", "never push to main", True),
        ('say \\"never\\npush\\"', "never push", True),
        ("never push", "**never** push", True),
        ("see src/app.py", "*.py files", False),
        ("see src/app.py", "*.py", False),
        ("init()", "__init__", False),
        ("__init__()", "init", False),
        ("\\tests\\new", "tests", True),
    ],
)
def test_a_quotation_is_the_same_words_and_no_part_of_longer_ones(text, quotation, held):
    assert quotes(readings(text), sought(quotation)) == held


def test_the_end_of_a_sentence_is_no_part_of_its_quotation():
    assert sought("Never push to main!") == "never push to main"
    assert sought("...") == "..."


def test_content_words_leave_out_what_any_text_has_and_split_scripts_without_spaces_by_two():
    assert content_words("You must never rename the tested columns") == {"renam", "test", "column"}
    assert content_words("change, changes, changed, changing") == {"chang"}
    assert content_words("数据库迁移之前必须先备份") == {"数据", "据库", "库迁", "迁移", "备份"}
    assert content_words("テストを実行しないでください") == {"テスト", "実行"}
    assert content_words("운영 데이터베이스는 절대") == {"운영", "데이", "이터", "터베", "베이", "이스"}


def test_a_paraphrase_in_a_script_without_spaces_is_one_by_pairs():
    assert paraphrases("用户要求：所有数据库迁移必须先备份。", "数据库迁移之前必须先备份")
    assert not paraphrases("测试已经全部通过，没有其他问题。", "数据库迁移之前必须先备份")


def test_paraphrases_in_scripts_without_spaces_are_found_as_often_as_the_page_says():
    matches = [paraphrases(said, sentence) for pairs in UNSPACED.values() for sentence, said in pairs]
    others = [
        paraphrases(said, sentence)
        for pairs in UNSPACED.values()
        for place, (sentence, _) in enumerate(pairs)
        for other, (_, said) in enumerate(pairs)
        if other != place
    ]
    assert (len(matches), sum(matches), len(others), sum(others)) == (
        UNSPACED_PAIRS,
        UNSPACED_FOUND,
        UNSPACED_OTHERS,
        0,
    )


@pytest.mark.parametrize("language", SENTENCES)
def test_rules_and_requests_of_other_languages_are_known_by_their_wording(language):
    rules, requests, statements = SENTENCES[language]
    assert {sentence: kind_of(sentence, of_user=True) for sentence in rules} == dict.fromkeys(rules, RULE)
    assert {sentence: kind_of(sentence, of_user=True) for sentence in requests} == dict.fromkeys(requests, REQUEST)
    assert {sentence: kind_of(sentence, of_user=True) for sentence in statements} == dict.fromkeys(statements, "")
    assert not any(kind_of(sentence) for sentence in requests)  # nothing but a user asks


@pytest.mark.parametrize(("fence", "count"), [("python", 0), ("C++", 0), ("", 2), ("text", 2), ("md", 2)])
def test_comments_in_code_are_no_instructions(fence, count):
    """What is fenced as a program is not said to the model; a block of prose may be a list of rules."""
    text = f"Explain this:\n```{fence}\n# You must call close() first.\n# Never import os here.\n```\nAlways be brief."
    assert len(rule_sentences(user(text))) == count + 1
    assert len(rule_sentences(user(text.rpartition("```")[0]))) == count  # cut in the middle of the block


def test_a_short_chinese_rule_says_as_much_as_a_longer_english_one():
    texts = [
        item.text for item in instructions(session(), enumerate([user("必须使用UTC时间。绝不要修改原始文件。不要。")]))
    ]
    assert texts == ["必须使用UTC时间。", "绝不要修改原始文件。"]


def test_a_sentence_of_several_clauses_may_be_said_one_here_and_one_there():
    rule = "Never edit vendored parser files by hand, and write every migration with a rollback script beside it."
    parser, rollback = "- vendored parser files: untouched", "- each migration needs a rollback script beside it"
    state = "\n".join(f"- item {number} of the plan is finished" for number in range(5))
    assert paraphrases(f"{parser}\n{state}\n{rollback}", rule)
    assert not paraphrases(
        f"{parser}\n{state}", "Never edit vendored files by hand, and write migrations with rollbacks."
    )
    assert not paraphrases(state, rule)


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("Never edit it by hand and always run the linter.", ["Never edit it by hand", "always run the linter."]),
        ("Use four spaces, never tabs.", ["Use four spaces, never tabs."]),
        ("When you cite a paper, use the primary source.", ["When you cite a paper, use the primary source."]),
        ("Never push to main unless two people agree.", ["Never push to main", "unless two people agree."]),
        ("Write numbers as words, not as digits.", ["Write numbers as words, not as digits."]),
        (
            "Bearbeite die Parserdateien nie von Hand und führe den Linter über alle Dateien aus.",
            ["Bearbeite die Parserdateien nie von Hand", "führe den Linter über alle Dateien aus."],
        ),
        (
            "Pushe nie auf den Branch main, es sei denn, der Leiter stimmt zu.",
            ["Pushe nie auf den Branch main", "es sei denn, der Leiter stimmt zu."],
        ),
        (
            "Teste die Module und die Datenbank immer auf dem Server.",
            ["Teste die Module und die Datenbank immer auf dem Server."],
        ),
        (
            "Ne modifiez jamais les fichiers générés et exécutez le linter avant chaque commit.",
            ["Ne modifiez jamais les fichiers générés", "exécutez le linter avant chaque commit."],
        ),
        (
            "Lance le linter et ne modifie pas les fichiers générés.",
            ["Lance le linter", "ne modifie pas les fichiers générés."],
        ),
        (
            "No edites los archivos generados y ejecuta el linter antes de confirmar.",
            ["No edites los archivos generados", "ejecuta el linter antes de confirmar."],
        ),
        (
            "Никогда не правь файлы парсера вручную и запускай линтер перед коммитом.",
            ["Никогда не правь файлы парсера вручную", "запускай линтер перед коммитом."],
        ),
        ("Файлы и случаи тестов должны быть в папке.", ["Файлы и случаи тестов должны быть в папке."]),
    ],
)
def test_a_sentence_gives_the_instructions_that_can_be_followed_apart(sentence, parts):
    assert list(map(content_words, instructions_in(sentence))) == list(map(content_words, parts))


@pytest.mark.parametrize(
    "words",
    [
        "commit commits committing committed",
        "copy copies copied copying",
        "migrate migration migrations migrating",
        "document documented documentation documents",
        "deploy deployment deployed",
        "flaky flakiness",
        "parse parser parsing",
        "use used using uses",
        "write writes written wrote",
        "schreiben schreibe",
        "code codes coded coding",
        "plan plans planned planning",
        "fix fixes fixed fixing",
        "cache caches cached caching",
        "verify verifies verified verification",
        "install installs installation",
        "configure configured configuration",
        "delete deleting deletion",
        "connect connects connection",
        "agree agreed agreement",
        "supprimer supprime",
        "тест тесты тестов тестами",
    ],
)
def test_inflected_forms_are_one_word(words):
    assert len({content_words(word) for word in words.split()}) == 1


@pytest.mark.parametrize(
    "words",
    [
        *("test text", "port part", "branch brand", "legacy legal", "main mail"),
        *("commit commitment", "state station", "state statement", "list listen", "fast fasten", "plan plane"),
        *("number numb", "folder fold", "let letter", "port portion", "miss mission", "quest question"),
        *("product production", "format formation", "even evening", "local locale", "busy business", "base basement"),
    ],
)
def test_words_that_only_look_alike_are_two(words):
    assert len({content_words(word) for word in words.split()}) == 2


def test_a_rule_is_not_said_by_words_that_look_like_its_own():
    assert conveys("Commits to main are forbidden.", "Never commit to main.")
    assert not conveys("The main commitment of the team is quality. We are never late.", "Never commit to main.")


@pytest.mark.parametrize("word", ["at" * 50_000 + "ion", "is" * 50_000 + "ation", "a" * 100_000 + "ing"])
def test_words_of_any_length_are_compared_in_proportion_to_their_length(word):
    """Data without spaces in it is one word; looking for endings behind every letter of it would take minutes."""
    assert content_words(word) == {word}


def test_few_words_are_never_a_paraphrase():
    assert shared_words("go with option 1", "option 1 it is") > 0.5
    assert not paraphrases("option 1 it is", "go with option 1")


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Never push to main.", RULE),
        ("绝不要提交密钥", RULE),
        ("必ずテストを実行する", RULE),
        ("let's go with option 1.", REQUEST),
        ("ok, please fix the parser", REQUEST),
        ("- [ ] update CHANGELOG.md", REQUEST),
        ("Can you never push to main?", REQUEST),
        ("Why must the build be slow?", ""),
        ("You must not touch migrations, ok?", RULE),
        ("The build must be slow, or?", ""),
        ("迁移绝不能改，ok？", ""),
        ("see http://example.com/a?b=never", ""),
        ("The sky is blue", ""),
        ("don't " + "x" * 500, ""),
    ],
)
def test_a_sentence_is_a_rule_or_a_request_by_its_wording(sentence, kind):
    assert kind_of(sentence, of_user=True) == kind


def test_an_abbreviation_ends_no_sentence():
    text = "The server should not be restarted, e.g. by a test. Say so, i.e. write it down. Etc."
    assert split_sentences(text) == [
        "The server should not be restarted, e.g. by a test.", "Say so, i.e. write it down.", "Etc."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('Answer "no comment." Then stop.', ['Answer "no comment."', "Then stop."]),
        ("**Never push.** (Ask first.) Then work.", ["**Never push.**", "(Ask first.)", "Then work."]),
        ("回答「不行。」然后停下。", ["回答「不行。」", "然后停下。", ""]),
        ('Never answer "Done." if (any, etc.) tests fail.', ['Never answer "Done." if (any, etc.) tests fail.']),
        ("Say «oui.» à la fin. Stop.", ["Say «oui.» à la fin.", "Stop."]),
        ('Answer "no."\nthen stop.', ['Answer "no."', "then stop."]),
        ("Delete foo.* and *.* in /tmp", ["Delete foo.* and *.* in /tmp"]),
    ],
)
def test_a_sentence_has_the_marks_that_close_it(text, sentences):
    assert split_sentences(text) == sentences


def test_requests_are_those_of_users_alone():
    assert kind_of("let's go with option 1.") == ""


def test_each_instruction_is_proposed_once_with_the_message_that_said_it_first():
    log = [
        user("Never push to main branch. Thanks!"),
        model("Never mind the weather"),
        user("never push to MAIN branch."),
    ]
    built = session(*log, system="Always answer in plain English.")
    proposed = instructions(built, [(0, log[0]), (2, log[2])])
    assert [(item.event, item.text) for item in proposed] == [
        (-1, "Always answer in plain English."),
        (0, "Never push to main branch."),
    ]


def test_details_are_paths_identifiers_quantities_and_open_todos():
    todos = [{"content": "write the tests", "status": "pending"}, {"content": "plan", "status": "completed"}]
    events = [
        (0, user("Change get_user_name in src/api/users.py, keep it under 250 ms, see https://example.org/a?b=1.")),
        (3, tool_call("TodoWrite", "t", todos=todos)),
    ]
    assert {(item.kind, item.text) for item in details(events)} == {
        ("todo", "write the tests"),
        ("path", "src/api/users.py"),
        ("path", "https://example.org/a?b=1"),
        ("identifier", "get_user_name"),
        ("quantity", "250 ms"),
    }


def test_the_tags_of_a_command_and_its_name_are_no_paths():
    command = "<command-message>fix</command-message>\n<command-name>/fix-it</command-name>\n"
    typed = f"{command}<command-args>see /srv/app and <lib/a.py></command-args>\n<bash-input>ls /etc/ssh</bash-input>"
    assert {item.text for item in details([(0, user(typed))])} == {"/srv/app", "lib/a.py", "/etc/ssh"}


@pytest.mark.parametrize(
    "text", ["a_" * 50_000 + "/", "1," * 80_000, "+" * 100_000, "/a" * 50_000, "a-" * 60_000, "aB" * 50_000]
)
def test_hostile_texts_are_looked_through_in_proportion_to_their_length(text):
    assert len(details([(0, user(text))])) <= 3


def test_the_measurement_judges_every_line_by_the_cut_of_the_others():
    labelled = [
        ("rename the tenant column everywhere", "The tenant column is renamed everywhere.", True),
        ("answer only with bullet points today", "Bullet points are used for every answer today.", True),
        ("draft every mail before sending anything", "Nothing was said of it.", False),
    ]
    assert measured(labelled) == {"labelled": 3, "agrees": 3, "agrees held out": 3, "others": 6, "false of others": 0}
    assert best_cut([(0.2, False), (0.6, True)]) == pytest.approx(0.4)


@pytest.mark.parametrize("line", ["print(td_field.serialize(obj))", "switch (filter) {", "return total;"])
def test_a_line_of_code_is_no_request(line):
    assert kind_of(line, of_user=True) == ""
    assert kind_of("Return the total (in tokens)", of_user=True) == REQUEST


ELSEWHERE = [
    (
        "Bitte stelle den Rechnungsexport auf das neue Schema der Buchhaltung um.",
        "Der Nutzer möchte den Rechnungsexport auf das neue Schema der Buchhaltung umstellen.",
        "Die Arbeit läuft: auf das Lesen folgt nun das Schreiben, und um den neuen Rest, bitte, das neue Ende.",
    ),
    (
        "Ne modifie jamais les fichiers de configuration du serveur de test.",
        "Les fichiers de configuration du serveur de test ne doivent pas être modifiés.",
        "Les essais du matin ne finissent jamais ; la lecture de la base avance.",
    ),
    (
        "No cambies nunca los archivos de configuración del servidor de pruebas.",
        "Los archivos de configuración del servidor de pruebas no se cambian.",
        "Los datos del proyecto nunca se leen de noche.",
    ),
]


@pytest.mark.parametrize(("asked", "said", "unrelated"), ELSEWHERE, ids=["de", "fr", "es"])
def test_words_that_any_text_of_a_language_has_say_nothing(asked, said, unrelated):
    assert paraphrases(said, asked)
    assert not paraphrases(unrelated, asked)


@pytest.mark.parametrize(
    "line",
    [
        "TypeError: argument must be str, not int",
        "error: cannot find module 'x'",
        "error[E0425]: cannot find value `x` in this scope",
        "npm ERR! peer dep missing, required by react@17",
        "2026-05-04 10:00:00 ERROR Connection cannot be established",
        "assert total is not None, 'must be set'",
        "I can't log in.",
        "I don't know why it fails.",
        "It should work now, thanks!",
        "You should see a dialog.",
        "Only the second run failed.",
        "The build only takes three minutes now.",
        "There is at least one failing test.",
        "We never had this problem before.",
        "The file was deleted without warning.",
        "Test passed",
        "Run finished in 3s",
        "Read timeout=30",
        "Check: ok",
    ],
)
def test_what_is_reported_asks_for_nothing(line):
    assert kind_of(line, of_user=True) == ""


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("I don't want you to touch the migrations.", RULE),
        ("It should only read the file, never write it.", RULE),
        ("Warning: never push to main.", RULE),
        ("We never commit to main.", RULE),
        ("The script must run without errors.", RULE),
        ("You should always run the tests.", RULE),
        ("Only change the parser.", RULE),
        ("Only retry what failed.", RULE),
        ("You cannot use the network.", RULE),
        ("Check the failing test", REQUEST),
        ("Fix failures in the parser", REQUEST),
        ("Run the tests that failed", REQUEST),
    ],
)
def test_and_what_asks_for_something_still_does(line, kind):
    assert kind_of(line, of_user=True) == kind
