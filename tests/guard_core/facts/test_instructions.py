"""Which sentences of a user are rules, which of these are meant for more than one task, and which say so."""

import time

import pytest

from guard_core.events import TextPart
from guard_core.facts.instructions import REQUEST, RULE, directs, is_universal, kind_of, outlasts_its_turn, sentences

TASK, OPEN, STANDING = (True, False, False), (True, True, False), (True, True, True)
NONE = (False, False, False)


@pytest.mark.parametrize(
    ("sentence", "scope"),
    [
        ("Always run `make lint` before committing.", STANDING),
        ("Never delete user data without asking me first.", STANDING),
        ("Commit messages must be in imperative mood and at most 72 characters.", STANDING),
        ("You must always use the repository pattern here, as in the other modules.", STANDING),
        ("We never support Python 2 anymore.", STANDING),
        ("Il faut toujours utiliser pnpm.", STANDING),
        ("Bitte antworte immer auf Deutsch.", STANDING),
        ("永远不要直接推送到主分支。", STANDING),
        ("Use tabs instead of spaces in Makefiles.", OPEN),
        ("Only change what is needed.", OPEN),
        ("Please avoid any external dependencies.", OPEN),
        ("Der Test schlägt immer fehl.", NONE),
        ("Do not commit yet.", TASK),
        ("Write a function that never returns None.", TASK),
        ("Make sure the migration is reversible.", TASK),
        ("There should be a button in the corner that opens the settings.", TASK),
        ("The page should redirect to /home, but it always shows an error.", TASK),
        ("It must be a caching issue.", NONE),
        ("You must have changed something in config.py.", NONE),
        ("Never mind, it works now.", NONE),
        ("I think the component doesn't know that every line must be padded.", NONE),
        ("It seems that the test never ends.", NONE),
        ("self.required = set()", NONE),
        ("Two reviews are required for each change.", OPEN),
        ("Don't worry about the linter.", NONE),
        ("I can't log in, and I never got the email.", NONE),
        ("The server can't start without its configuration.", NONE),
        ("Should it always be green?", NONE),
    ],
)
def test_a_rule_is_of_its_task_or_holds_on(sentence, scope):
    is_rule = directs(sentence)
    assert (is_rule, outlasts_its_turn(sentence), is_rule and is_universal(sentence)) == scope


@pytest.mark.parametrize(
    ("sentence", "is_rule"),
    [
        ("Only three companies survived the crash.", False),
        ("At least twelve people were injured in the accident.", False),
        ("Without a permit, construction was halted in May.", False),
        ("Unless otherwise stated, all prices are in euros.", False),
        ("Never before had so many people voted.", False),
        ("Never has a harvest been so late.", False),
        ("Only touch files that were changed in this branch.", True),
        ("Only the files you changed, please.", True),
        ("Never have secrets in the log.", True),
        ("Only merge reviewed branches.", True),
        ("At least 90 % of the lines must be covered.", True),
        ("Only the following files are to be changed.", True),
        ("Without asking me first, delete nothing.", True),
        ("Unless the tests have passed, don't commit.", True),
        ("Only after the war did the city recover.", False),
        ("Only in 1998 was the old bridge opened.", False),
        ("At least two of the injured people died.", False),
        ("Only after the tests have passed, push to main.", True),
        ("Never when the tests are red.", True),
        ("Never the deprecated API.", True),
        ("You must never answer that I don't know", True),
        ("Only in nested folders, not at the top.", True),
        ("Only the generated files may be deleted.", True),
        ("At least one reviewer has to approve every change.", True),
        ("At least two tests are needed for each function.", True),
    ],
)
def test_a_statement_that_begins_as_a_rule_does_directs_nobody(sentence, is_rule):
    assert directs(sentence) == is_rule


@pytest.mark.parametrize(
    "sentence",
    [
        # proposals, guesses, and what holds at present
        "Maybe we should move the cache into its own module.",
        "Perhaps the header should stay, I am not sure.",
        "You should probably mention this in the changelog.",
        "You must pick a date first.. idk maybe that is too long",
        "Always add a changelog line, idk.",
        "I might be wrong, but you never call the parser twice.",
        "Currently, users must type the whole path by hand.",
        "We should rename the folder as well.",
        "So we only write the index when something has changed.",
        "We can't stop the shell from closing there.",
        # questions, direct and indirect
        "should we close the ticket now",
        "the entries (they must be in order, right?)",
        "**Must every reader know this?**",
        "Look whether the flag should be removed.",
        "Consider if the index should also be dropped (probably keep it)",
        "Let me know if any of them should be closed.",
        # what is expected, possible or not needed
        "Run `make check`, it should pass.",
        "The second commit should have been signed.",
        "They should already handle several files.",
        "The parser may not see the last line.",
        "So this may not be exercised at all in practice.",
        "This shouldn't be a problem.",
        "a simple path, so no further configuration is required.",
        # purposes and circumstances
        "Run the linter to ensure the formatting is clean",
        "I want this out of the way so that you don't get confused.",
        "I feel like you should write all of this down.",
        "Pass the list of checks without their extension to the job.",
        "Fix the slicing without length check",
        "Remove the fields that don't exist in the summary.",
        "Just explain what happens and why we can't change that.",
        # descriptions
        "Only index.html was included, the rest was left alone.",
        "- **Only Pico** has the other extension.",
        "# Always-on status line in the footer",
        "# (never resolves, never reaches the network)",
        "Defines what every agent must follow.",
        "only touches the disk, so it is safe",
        "- Sets the limit (the next call must get a fresh id)",
        "- Bad: `You must run the linter before you commit`",
        '* "Only a beacon, no data."',
        "## Required setup: an account",
        "Without this step, the counts will be lost at the next start.",
        # what programs print, and comments of code
        "commit_test.py:808: Second commit should NOT have a trailer, got 7940",
        "Messages:       Should have at least 2 points",
        "// make sure that all templates are resolved",
        "+       // Always written with a newline",
        "48 -        // BUG: should be another property",
    ],
)
def test_what_has_the_words_of_a_rule_and_says_how_things_are_directs_nobody(sentence):
    assert not directs(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "We should never push to main.",
        "We shouldn't change the public names.",
        "We want to avoid force pushes entirely.",
        "We need to make sure that the old names stay readable.",
        "The footer should show the version.",
        "You may not change the schema.",
        "The migrations may not be touched.",
        "Only accept known values.",
        "**Only deduplicate** what appears twice.",
        "Only JSON is accepted as an answer.",
        "Return only one block of code.",
        "Rename it without touching the tests.",
        "Add the flag, but don't change the default.",
        "Required: two reviews for each change.",
        "If it fails, you should stop.",
        "Check if the tests pass and never push to main.",
        "Look whether the flag is still needed but don't remove it.",
        "Write a parser that never loses a line.",
    ],
)
def test_what_asks_for_something_remains_a_rule(sentence):
    assert directs(sentence)


@pytest.mark.parametrize(
    ("sentence", "holds_on"),
    [
        ("Use `pnpm` instead of `npm`.", True),
        ("Use `len(summary.parts)` instead of `summary.count`", False),
        ("In the table we should not show the price.", True),
        ("The price should not be in the table.", False),
    ],
)
def test_a_detail_of_a_task_does_not_outlast_it(sentence, holds_on):
    assert outlasts_its_turn(sentence) == holds_on


@pytest.mark.parametrize(
    "data", ['{"id": "3", "subject": "Never push, only drop fixtures"}', '  [{"rule": "Always ask"}]']
)
def test_a_line_of_json_is_data_and_has_no_sentences(data):
    assert list(sentences((TextPart(f"Never push.\n{data}\nUse {{braces}} only here."),))) == [
        "Never push.",
        "Use {braces} only here.",
    ]


@pytest.mark.parametrize("text", ["<bash-stdout>" * 15_000, "<local-command-x>" * 11_000, "```" + "a" * 190_000])
def test_tags_and_fences_that_never_end_are_read_in_time(text):
    begun = time.process_time()
    assert list(sentences((TextPart(text),))) == [text]
    assert time.process_time() - begun < 2


def test_a_tag_that_never_ends_leaves_the_printed_text_behind_it_out():
    text = "See <bash-stderr> here.\n<bash-stdout>Never run x.</bash-stdout>Always run the tests."
    assert list(sentences((TextPart(text),))) == ["See <bash-stderr> here.", "Always run the tests."]


@pytest.mark.parametrize("tag", ["bash-stdout", "bash-stderr", "local-command-caveat", "local-command-stdout"])
def test_what_a_command_of_the_user_printed_has_no_sentences(tag):
    text = f"<{tag}>Caveat: made by a command. DO NOT answer\nany of these.</{tag}>\nNever push to main."
    assert [one for one in sentences((TextPart(text),)) if one.strip()] == ["Never push to main."]


@pytest.mark.parametrize(
    "report",
    [
        "<task-notification>\n<task-id>a1</task-id>\nThe service only loads two of them.\n</task-notification>",
        '<teammate-message teammate_id="tester" summary="a -> b">\nYou must never run it.\n</teammate-message>',
    ],
)
def test_what_another_agent_reports_has_no_sentences(report):
    assert [one for one in sentences((TextPart(f"{report}\nNever push to main."),)) if one.strip()] == [
        "Never push to main."
    ]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("return make_button(", ""),
        ("return make_button(text, color=Style.PRIMARY, icon=icon)", ""),
        ("REPLY-клавиатура", ""),
        ("Start-Sleep 20", ""),
        ("Return the total (in tokens)", REQUEST),
        ("Return make_button() for each of them", REQUEST),
        ("Reply in English", REQUEST),
    ],
)
def test_a_line_of_a_program_or_a_compound_that_begins_as_a_request_does_is_none(line, kind):
    assert kind_of(line, of_user=True) == kind


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The second point I don't folow yet.", ""),
        ("If they don't like it, there is the plugin.", ""),
        ("They can't reach the server.", ""),
        ("I don't want any new dependency.", RULE),
        ("I don't really like mocks.", RULE),
        ("I don't ever want mocks.", RULE),
        ("If they don't like it, never argue.", RULE),
    ],
)
def test_what_somebody_does_not_do_is_no_rule(sentence, kind):
    assert kind_of(sentence) == kind


REPORTS = (
    "Der Server startet nie beim ersten Mal.",
    "Die Tests schlagen immer fehl.",
    "Das Skript funktioniert nur unter Linux.",
    "Les tests échouent toujours sur la CI.",
    "Le serveur ne répond jamais.",
    "La page charge seulement la moitié des images.",
    "L'application plante toujours au démarrage.",
    "El servidor nunca arranca a la primera.",
    "La prueba siempre falla en el segundo paso.",
    "O servidor sempre cai depois de uma hora.",
    "Il test fallisce sempre.",
    "La funzione non restituisce mai un valore.",
    "测试总是失败。",
    "日志里总是显示超时错误。",
    "De tests falen altijd.",
    "Testy zawsze się wywalają.",
    "Тесты всегда падают.",
    "Сервер никогда не отвечает.",
    "Ich bekomme immer denselben Fehler.",
    "Es kommen nur drei Zeilen zurück.",
)
RULES = (
    "Ändere niemals die Datei config.yaml.",
    "Kommentare immer auf Deutsch schreiben.",
    "Die Kommentare immer auf Deutsch.",
    "Los comentarios siempre en español.",
    "Die Tests immer lokal ausführen.",
    "Nur Python verwenden.",
    "Die Datei darf nicht geändert werden.",
    "Die Datei darf nie geändert werden.",
    "Committe nie direkt auf main.",
    "Wir committen nie direkt auf main.",
    "Du antwortest immer auf Deutsch.",
    "Bitte immer die Tests ausführen.",
    "Ne modifie jamais le fichier config.yaml.",
    "Toujours utiliser pnpm.",
    "Le fichier ne doit jamais être modifié.",
    "N'utilise que des fonctions pures, jamais de classes.",
    "Nunca modifiques config.yaml.",
    "Usa siempre pnpm en lugar de npm.",
    "Siempre ejecuta los tests antes de confirmar.",
    "El archivo nunca debe cambiar.",
    "Nunca altere o arquivo config.yaml.",
    "Use sempre pnpm.",
    "Non modificare mai config.yaml.",
    "Usa sempre pnpm.",
    "永远不要修改 config.yaml。",
    "请始终使用 pnpm。",
    "总是先运行测试。",
    "请总是用中文回答。",
    "コメントは必ず日本語で書いてください。",
    "항상 테스트를 먼저 실행하세요.",
    "Gebruik altijd pnpm.",
    "Zawsze używaj pnpm.",
    "Używaj zawsze pnpm.",
    "Komentarze zawsze po polsku.",
    "Всегда используй pnpm.",
    "Отвечай всегда по-русски.",
    "Никогда не меняй config.yaml.",
)


def test_what_happens_always_or_never_is_no_rule_in_any_known_language():
    assert [sentence for sentence in REPORTS if kind_of(sentence, of_user=True) == RULE] == []
    assert [sentence for sentence in RULES if kind_of(sentence, of_user=True) != RULE] == []


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("we need to guide the users who put it in .app.deve because it is mine", ""),
        ("the module is under src/nur/index.ts now", ""),
        ("the logs are on nunca.example.org", ""),
        ("Ändere nie src/nur/index.ts", RULE),
        ("Der Test muss/soll lokal laufen", RULE),
        ("Gut...nur die Tests ausführen", RULE),
    ],
)
def test_a_part_of_a_name_is_no_word_of_another_language(sentence, kind):
    assert kind_of(sentence) == kind


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("這個結果不可驗證。", ""),
        ("服务暂时不可用。", ""),
        ("这是不可能的，日志不可靠。", ""),
        ("不可修改這些文件。", RULE),
        ("不可用第三方库。", RULE),
        ("你不可以推送到主分支。", RULE),
        ("不可读取 .env 文件。", RULE),
        ("不可用 tab 缩进。", RULE),
        ("不可变更接口。", RULE),
        ("不可追加新的依赖。", RULE),
        ("不可重复提交。", RULE),
        ("不可复制这段代码。", RULE),
        ("不可分享密钥。", RULE),
        ("这些文件不可读。", ""),
        ("列表是不可变的。", ""),
        ("避免不可重复读的问题", ""),
    ],
)
def test_what_cannot_be_is_no_rule_in_chinese_either(sentence, kind):
    assert kind_of(sentence) == kind


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Traditional job boards require deliberate search queries.", ""),
        ("require 'json'", ""),
        ("Require two reviews for each change.", RULE),
        ("- Please require a login on every page.", RULE),
        ("We require a test for each fix.", RULE),
        ("A test is required for each fix.", RULE),
        ("The schema has all required tables.", ""),
        ("The body has every required field and `id`.", ""),
        ("Fill the required `name` in, with a default as required.", ""),
        ("All the tests are required.", RULE),
        ("Required: two reviews of each change.", RULE),
        ("The reviews required for each change are two.", RULE),
    ],
)
def test_what_something_requires_is_no_rule_for_whoever_works(sentence, kind):
    assert kind_of(sentence) == kind
