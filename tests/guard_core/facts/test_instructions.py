"""Which sentences of a user are rules, which of these are meant for more than one task, and which say so."""

import pytest

from guard_core.facts.instructions import directs, is_universal, outlasts_its_turn

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
        ("Der Test schlägt immer fehl.", OPEN),  # which words are reports is known of English alone
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
