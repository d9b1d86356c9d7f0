"""Sentences of a summary that have the words of a rule and say that it does not hold."""

import pytest

from guard_core.facts.lifting import opposes
from guard_core.facts.texts import conveys
from guard_core.facts.withdrawals import withdraws
from tests.builders import user

PUSH = "Never push to main."
TOUCH = "You must never touch the file legacy.py."
LINT = "Always run the linter over all files."


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (PUSH, "The user allowed pushing to main."),
        (PUSH, "Pushing to main is now allowed."),
        (PUSH, "Pushing to main is no longer forbidden."),
        (PUSH, "The user asked the agent to push to main."),
        (PUSH, "Always push to main."),
        (PUSH, "The user lifted the ban on pushing to main."),
        (PUSH, "The rule about pushing to main was withdrawn."),
        (TOUCH, "The user gave permission to touch the file legacy.py."),
        (LINT, "Running the linter over all files is no longer required."),
        (LINT, "Do not run the linter over all files."),
    ],
)
def test_a_sentence_that_lifts_or_reverses_a_rule_does_not_keep_it(rule, said):
    assert opposes(said, rule)
    assert not conveys(said, rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (TOUCH, "The user said that the file legacy.py may now be touched."),
        (TOUCH, "The user: forget the rule about the file legacy.py."),
        ("Never touch the tests.", "You may touch the tests again if you want."),
        ("Never edit the generated files under src/gen.", "You can edit the generated files under src/gen again."),
        ("Use four spaces, never tabs.", "You may use tabs again."),
        (LINT, "There is no need to run the linter over all files."),
        ("Do not commit without running the linter.", "You no longer need to run the linter before you commit."),
        ("Do not modify the file config.yaml.", "You can change config.yaml now."),
        ("Never touch the tests.", "From now on you may edit the tests as you like."),
        ("Never touch the tests.", "You may touch the tests again, then run them."),
        ("Never touch the tests.", "Fix the build and then you may touch the tests."),
        ("Never delete rows of the table users.", "You can remove rows of the table users."),
        ("Fasse die Tests niemals an.", "Du darfst die Tests jetzt wieder anfassen."),
        ("Fasse die Tests niemals an.", "Die Regel zu den Tests gilt nicht mehr."),
        ("Ne touche jamais aux tests.", "Tu peux de nouveau toucher aux tests."),
        ("Lance toujours le linter.", "Plus besoin de lancer le linter."),
        ("Nunca toques las pruebas.", "Ya puedes tocar las pruebas."),
        ("不要修改测试文件。", "现在可以修改测试文件了。"),
        ("テストを変更しないでください。", "テストを変更してもいいです。"),
        ("테스트를 절대 수정하지 마세요.", "이제 테스트를 수정해도 됩니다."),
    ],
)
def test_a_rule_is_lifted_in_other_languages_and_by_its_user_too(rule, said):
    assert withdraws(user(said), rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (TOUCH, "Read the file legacy.py again."),
        (TOUCH, "May I touch the file legacy.py again?"),
        (TOUCH, "You may touch the file legacy.py this once."),
        ("Never touch the tests.", "You must change the parser so that the tests pass."),
        ("Never touch the tests.", "You can update the manual, then run the tests."),
        ("Do not modify the file config.yaml.", "You can read config.yaml now."),
        ("Do not modify the file config.yaml.", "You can change config.yaml in a branch only."),
        ("Fasse die Tests niemals an.", "Du darfst die Tests jetzt nicht anfassen."),
        ("Fasse die Tests niemals an.", "Du darfst die Tests diesmal doch anfassen."),
        ("Nunca toques las pruebas.", "Ya puedes ver las pruebas, pero nunca las toques."),
        ("不要修改测试文件。", "现在可以运行程序，不要修改测试文件。"),
        # of the same things, and of something else to do with them
        ("Never touch the tests.", "You can run the tests again."),
        ("Never touch the tests.", "Please check whether the tests can be run again."),
        ("Never touch the tests.", "It is no longer necessary to run the tests."),
        ("Never add dependencies.", "The dependencies are not required to build."),
        ("Never edit the generated files under src/gen.", "You can regenerate the files under src/gen again."),
        ("Fasse die Tests niemals an.", "Du darfst die Tests jetzt ausführen."),
        ("Ne touche jamais aux tests.", "Tu peux de nouveau lancer les tests."),
        ("Nunca toques las pruebas.", "Ya puedes correr las pruebas."),
        ("不要修改测试文件。", "现在可以运行测试文件了。"),
        # what is not needed is not allowed for that
        ("Never touch the tests.", "You do not need to touch the tests."),
        ("Do not use mocks in the tests.", "Mocks are no longer needed in the tests."),
        ("Fasse die Tests niemals an.", "Du musst die Tests nicht mehr anfassen."),
        # what reminds of a rule, is about another one, or lifts it for some cases or other hands
        ("Never touch the tests.", "Don't forget the rule about the tests."),
        ("Never touch the tests.", "Ignore the eslint rule for the tests."),
        ("Never alter the orders table.", "Drop the foreign key constraint on the orders table."),
        ("Never touch the tests.", "You may touch the tests again if they fail."),
        ("Never touch the tests.", "I can touch the tests again myself later."),
        (LINT, "You don't need to run the linter on Windows."),
        ("Never commit to main.", "Rebase onto main, then you may commit again."),
        ("Never commit to main.", "Rebase onto main then you may commit again."),
        ("Never commit to main.", "Rebase onto main and after that you can commit again."),
    ],
)
def test_a_message_that_leaves_a_rule_in_force_does_not_take_it_back(rule, said):
    assert not withdraws(user(said), rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (PUSH, "Pushing to main is not allowed."),
        (PUSH, "Pushing to main is no longer allowed."),
        (PUSH, "Pushing to main is only allowed after a review."),
        (PUSH, "The user did not allow pushing to main."),
        (PUSH, "Main: no pushes."),
        (PUSH, "Pushes to main are forbidden. The user allowed network access."),
        (TOUCH, "The file legacy.py must stay as it is and is not touched."),
        (LINT, "The linter must be run over all files."),
        (LINT, "Do not commit without running the linter over all files."),
        ("Never add dependencies that are not needed.", "No dependencies that are not needed are added."),
        ("Never push to main unless you are allowed to.", "Pushing to main needs that you are allowed to."),
    ],
)
def test_a_sentence_that_leaves_a_rule_in_force_keeps_it(rule, said):
    assert conveys(said, rule)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (PUSH, "[CONTEXT COMPACTION — REFERENCE ONLY] The user allowed pushing to main."),
        ("Migrate the database.", "[CONTEXT COMPACTION — REFERENCE ONLY] Do not migrate the database."),
    ],
)
def test_what_a_client_writes_in_brackets_before_a_sentence_changes_nothing_in_it(asked, said):
    assert not conveys(said, asked)


def test_what_forbids_elsewhere_in_a_summary_keeps_the_rule_that_another_sentence_lifts():
    assert conveys("Pushes to main are forbidden.\nThe user allowed pushing to main once.", PUSH)
