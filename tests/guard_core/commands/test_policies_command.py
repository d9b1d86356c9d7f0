"""`python -m guard_core policies`."""

import json

from guard_core.__main__ import main
from guard_core.policies import GROUPS


def policies(capsys, *arguments):
    assert main(["policies", *arguments]) == 0
    return capsys.readouterr().out


def test_the_policies_of_a_group_are_below_its_heading(capsys):
    expected = [
        line for group, kinds in GROUPS.items() for line in (f"== {group} ==", *(f"{k.name}: {k.help}" for k in kinds))
    ]
    assert [line for line in policies(capsys).splitlines() if line in expected] == expected


def test_as_json_each_policy_names_its_group(capsys):
    listed = {item["name"]: item["group"] for item in json.loads(policies(capsys, "--json"))}
    assert listed == {kind.name: group for group, kinds in GROUPS.items() for kind in kinds}


def test_one_policy_is_printed_without_headings(capsys):
    assert policies(capsys, "codex").startswith("codex: ")
    assert [item["name"] for item in json.loads(policies(capsys, "codex", "--json"))] == ["codex"]


def test_a_share_is_allowed_up_to_all(capsys):
    (line,) = (line for line in policies(capsys, "kimi-cli").splitlines() if line.strip().startswith("share "))
    assert "from 0 to 1 " in line


def test_an_unknown_policy_is_an_error_that_names_the_known_ones(capsys):
    assert main(["policies", "nonsense"]) == 2
    assert "contextguard-sliding" in capsys.readouterr().err
