"""The rule page: the agent's own inequality with its numbers, and each compaction beside it."""

import html
import re

import msgspec
import pytest
from django.urls import reverse

from guard_core.simulator.samples import SAMPLES
from inspector.jobs.assessing import ASSESSMENTS
from inspector.models import RuleSetting
from inspector.models.rules import stated_settings
from inspector.replays import analysis
from inspector.replays.choice import parse_choice
from tests.builders import model, session, transcript, user
from tests.inspector.pages.conftest import same_sample


def page(client, row, query=""):
    response = client.get(reverse("session_rule", args=[row.pk]) + query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def test_it_says_the_rule_with_its_sum_and_where_the_recording_compacted(client, long):
    text = page(client, long)
    assert "compacts at 155,000: 200,000 − 32,000 (max output) − 13,000. Recorded at 155,277 and 155,475 (the" in text
    assert "2 of 2 compactions agree with the rule" in text
    assert "155,277 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000" in text
    assert "The threshold is above 154,693 and at most 155,277." in text


def test_an_encrypted_summary_has_no_size(client, store):
    text = page(client, store(transcript("codex", kind="opaque", messages=(user(""),))), "?at=4")
    assert "1, not readable" in text
    assert "not readable, size unknown" in text
    assert "≈ 0" not in text


def test_a_setting_that_the_file_lacks_can_be_typed(client, long):
    text = page(client, long, "?set.max_output_tokens=8192")
    assert "178,808" in text
    assert "0 of 2 compactions agree with the rule" in text


def test_a_saved_number_is_grouped_as_every_other(client, long):
    answer = client.post(
        reverse("session_rule_settings", args=[long.pk]), {"set.max_output_tokens": "91000", "do": "save"}, follow=True
    )
    text = html.unescape(answer.content.decode())
    assert "in this project: max output tokens 91,000." in text
    assert 'value="91000"' in text  # the field has what was typed


def test_a_setting_that_is_no_number_is_one_line_beside_its_field(client, long):
    text = page(client, long, "?set.max_output_tokens=many&set.unknown=1")
    assert "'many'" in text
    assert "compacts at 155,000" in text


def test_a_session_whose_agent_has_no_known_rule_says_so(client, store):
    text = page(client, store(session(user("Hello"), model("Hi"), format="openai-chat", agent="Homemade")))
    assert "The rule by which Homemade (openai-chat) compacts is not known here." in text
    assert "Below is what its recording shows about the threshold." in text
    assert "No compaction is recorded." in text


@pytest.mark.once  # computed from one session
@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_session_has_the_page(client, store, name):
    assert "The agent's own rule" in page(client, same_sample(name)).replace("&#x27;", "'")


def test_session_text_on_it_is_escaped(client, store):
    hostile = session(user("Hello"), model("Hi"), format="x", agent="<script>alert(1)</script>")
    response = client.get(reverse("session_rule", args=[store(hostile).pk]))
    assert b"<script>alert" not in response.content


# -- settings that are remembered


def save(client, row, do="save", **values):
    named = {f"set.{name}": value for name, value in values.items()}
    return client.post(reverse("session_rule_settings", args=[row.pk]), {"do": do, **named})


def test_a_setting_that_is_saved_counts_on_every_page_and_in_the_list(client, store):
    row = store(transcript())
    answer = save(client, row, max_output_tokens="8192")
    text = page(client, row, answer.url.removeprefix(reverse("session_rule", args=[row.pk])).split("#")[0])
    assert "Saved for all sessions of Claude Code in this project: max output tokens 8,192." in text
    assert "178,808" in text
    overview = html.unescape(client.get(row.get_absolute_url()).content.decode())
    assert "With the settings given here, Claude Code 2.1.14 would compact at 178,808: 200,000 − 8,192" in overview
    assert "never acts" in overview
    row.refresh_from_db()
    assert (row.threshold, row.verdict_kind) == (155_010, "setting_never_acts")


def test_a_setting_that_is_saved_is_what_a_replay_of_the_agents_policy_plays(client, store):
    row = store(transcript())
    choice, _ = parse_choice({"policy": "claude-code", "profile": "until-2.1.19"})

    def threshold(choice):
        return analysis.analyse(row, choice).replayed.columns["threshold"][0]

    assert threshold(choice) == 155_000
    save(client, row, max_output_tokens="8192")
    assert threshold(choice) == 178_808
    typed, _ = parse_choice({"policy": "claude-code", "profile": "until-2.1.19", "max_output": "32000"})
    assert threshold(typed) == 155_000


def test_other_sessions_of_the_agent_are_assessed_again(client, store):
    row, other = store(transcript()), store(transcript(version="2.1.62"), title="another")
    save(client, row, autocompact_pct="86")
    other.refresh_from_db()
    assert not other.is_assessed
    ASSESSMENTS.run("x")
    other.refresh_from_db()
    assert (other.is_assessed, other.threshold) == (True, 154_800)


def test_an_undo_brings_back_what_was_there_before(client, store):
    row = store(transcript())
    save(client, row, max_output_tokens="8192")
    answer = save(client, row, max_output_tokens="16384")
    shown = client.get(answer.url)
    assert shown.context["stated"]["undo"] == [{"name": "set.max_output_tokens", "value": "8192"}]
    save(client, row, max_output_tokens="8192")
    assert stated_settings(row.project_id, "Claude Code") == {"max_output_tokens": "8192"}


def test_clearing_forgets_all_of_them(client, store):
    row = store(transcript())
    save(client, row, max_output_tokens="8192")
    assert "No typed settings remain for Claude Code." in client.get(save(client, row, "clear").url).content.decode()
    assert stated_settings(row.project_id, "Claude Code") == {}


def test_what_is_only_tried_is_not_remembered(client, store):
    row = store(transcript())
    text = html.unescape(client.get(save(client, row, "try", max_output_tokens="8192").url).content.decode())
    assert "They are not saved." in text
    assert "178,808" in text
    assert RuleSetting.unscoped.count() == 0


def test_a_value_that_is_none_comes_back_beside_its_field(client, store):
    row = store(transcript())
    answer = client.get(save(client, row, max_output_tokens="<b>many").url).content.decode()
    assert "&lt;b&gt;many" in answer
    assert "<b>many" not in answer
    assert RuleSetting.unscoped.count() == 0


def test_a_session_without_a_rule_takes_no_setting(client, store):
    row = store(transcript("homemade"))
    assert save(client, row, max_output_tokens="8192").status_code == 302
    assert RuleSetting.unscoped.count() == 0


# -- the flow of one check, and what was kept


def test_the_flow_shows_the_numbers_of_the_chosen_step(client, store):
    row = store(transcript())
    text = page(client, row, "?at=3")
    assert "How it decided before step 3" in text
    assert "151,010 < 155,000 = 200,000 − 32,000 (max output) − 13,000" in text
    assert "No compaction: 3,990 tokens remain to the threshold." in text
    assert "+1,000" in text


def test_the_flow_begins_at_the_first_compaction(client, store):
    text = page(client, store(transcript(tokens_after=900)))
    assert "How it decided before step 4" in text
    assert "155,010 ≥ 155,000" in text
    assert "summarised or dropped 7 messages of 7 messages sent before" in text
    assert "This file: as the rule says." in text
    assert "size after, by the agent 900 tokens" in text


def test_each_box_of_the_drawing_is_a_link_to_its_stage(client, store):
    content = client.get(reverse("session_rule", args=[store(transcript()).pk])).content.decode()
    for number in range(1, 8):
        assert f'href="#stage-{number}"' in content
        assert f'id="stage-{number}"' in content


@pytest.mark.parametrize("at", ["0", "99", "many", "1"])
def test_an_address_without_such_a_step_shows_the_nearest(client, store, at):
    assert "How it decided before step" in page(client, store(transcript()), f"?at={at}")


@pytest.mark.once  # computed from one session
@pytest.mark.parametrize(
    ("format_", "version"), [("pi", ""), ("codex", ""), ("crush", ""), ("claude-code", "2.1.330"), ("gemini-cli", "")]
)
def test_every_check_of_every_rule_has_its_flow(client, store, format_, version):
    row = store(transcript(format_, version))
    for at in range(1, 5):
        assert f"How it decided before step {at}" in page(client, row, f"?at={at}")


def test_without_a_rule_there_is_no_flow(client, store):
    assert "How it decided" not in page(client, store(transcript("homemade")))


def test_what_was_kept_is_compared_with_the_rule(client, store):
    text = page(client, store(transcript()))
    assert "1 of 1 as the rule says" in text
    assert "By its rule it keeps the summary alone" in text


def at_the_end():
    """A session whose last compaction no call followed."""
    built = transcript(version="2.1.21")
    return msgspec.structs.replace(
        built, calls=tuple(call for call in built.calls if call.at < built.compactions[0].at)
    )


def test_a_compaction_that_no_call_followed_is_after_the_last_step(client, store):
    row = store(at_the_end())
    text = page(client, row)
    assert text.count("after the last step") == 3  # among the compactions, in what was kept, and as a bound
    assert f"step {row.calls + 1}" not in text
    text = client.get(f"{row.get_absolute_url()}c/1/").content.decode()
    assert f"After step {row.calls}, the last" in text


def test_without_a_threshold_the_flow_says_that_the_provider_compares_with_the_window(client, store):
    row = store(transcript(version="2.1.330", trigger="auto", prompts=(20_000, 150_000, 199_000, 30_000), place=3))
    text = page(client, row, "?at=3")
    assert "≤ 200,000 (window); no threshold" in text
    assert "The provider compares the request with the window of the model, and refuses a larger one." in text
    assert "≤ 200k" in text


def test_a_formula_that_explains_the_compactions_can_be_tried(client, store):
    row = store(transcript(version="2.1.21", prompts=(20_000, 140_000, 146_000, 9)))
    response = client.get(reverse("session_rule", args=[row.pk]))
    tries = re.findall(r'href="([^"]+)"\s+title="([^"]+)">Try this setting', response.content.decode())
    assert tries
    address, words = map(html.unescape, tries[0])
    tried = client.get(address).content.decode()
    assert f'name="set.{words.rpartition(" ")[0].replace(" ", "_")}"' in tried
    assert "1 of 1 compaction agrees with the rule" in re.sub(r"<[^>]+>", " ", tried)


def test_the_window_is_a_field_beside_the_other_settings(client, store):
    row = store(transcript(version="2.1.21"))
    assert 'name="set.window:' not in client.get(reverse("session_rule", args=[row.pk])).content.decode()
    assert "180,000 − 20,000 (max output) − 13,000" in page(client, row, "?set.window=180k")
    number = "A window is a number of tokens such as 200000, 200k or 1M, not "
    for typed, words in (("many", f"{number}'many'."), ("5", "A window has 256 to 100,000,000 tokens, not 5.")):
        text = html.unescape(client.get(save(client, row, window=typed).url).content.decode())
        assert words in text
        assert f'value="{typed}"' in text
        row.refresh_from_db()
        assert (row.window_override, row.model_window) == (None, None)
    answer = save(client, row, window="180k")
    row.refresh_from_db()
    assert 180_000 in (row.window_override, row.model_window)
    text = client.get(answer.url).content.decode()
    assert "Saved: window 180,000 tokens for " in text
    assert 'value="180000"' in text


def test_each_of_several_models_has_a_field_for_its_window(client, store):
    one = transcript(version="2.1.21", prompts=(20_000, 60_000, 65_000, 150_010, 30_000), place=4)
    calls = [msgspec.structs.replace(call, model="small/model-1") for call in one.calls[:3]]
    row = store(msgspec.structs.replace(one, calls=(*calls, *one.calls[3:])))
    assert "context window of small/model-1" in page(client, row)
    assert "57,000" not in page(client, row)
    assert "57,000" in page(client, row, "?set.window:small/model-1=90k")
    said = client.get(save(client, row, **{"window:small/model-1": "90k"}).url).content.decode()
    assert "Saved for all sessions of Claude Code in this project: context window of small/model-1 90k." in said
    assert "Context window of small/model-1 is a whole number" in page(client, row, "?set.window:small/model-1=many")


def test_a_saved_window_can_be_taken_back(client, store):
    row = store(transcript(version="2.1.21"))
    before = (row.window_override, row.model_window)
    response = save(client, row, window="180k")
    said = client.get(response.headers["location"]).content.decode()
    assert '<input type="hidden" name="set.window" value="">' in said
    save(client, row, window="")
    row.refresh_from_db()
    assert (row.window_override, row.model_window) == before


def test_a_value_that_is_none_leaves_the_saved_one_in_use_and_is_named_by_its_label(client, store):
    row = store(transcript())
    save(client, row, max_output_tokens="8192")
    text = page(client, row, "?set.max_output_tokens=many")
    assert "Max output tokens is a whole number" in text
    assert "max_output_tokens" not in text
    assert "200,000 − 8,192 (max output) − 13,000" in text
