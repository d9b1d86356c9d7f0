"""What an operator asks: is it ready, what does it do, what does it log, what is wrong with it."""

from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from inspector.models import Account, Recording, default_project
from inspector.models.recordings import STREAM
from inspector.project import doctor, health
from inspector.project.cli import ENGINE
from inspector.project.logs import JsonFormatter
from inspector.project.metrics import AnsweredRequests
from tests.inspector.people import person
from tests.inspector.rows import session_row

ROOT = Path(__file__).parents[3]
PRODUCTION = {"TEAM": "1", "PUBLIC_URL": "https://inspector.example", "ALLOWED_HOSTS": "inspector.example"}


@pytest.mark.django_db
def test_a_server_is_ready_whose_database_is_of_this_version(client, settings):
    settings.MIN_FREE_BYTES = 2**60  # a full disk and a silent worker keep nobody from reading
    assert (client.get("/readyz").status_code, client.get("/healthz").status_code) == (200, 503)


@pytest.mark.django_db
def test_a_database_that_waits_for_its_upgrade_is_not_ready(client):
    ((app, newest),) = MigrationLoader(None).graph.leaf_nodes("inspector")
    MigrationRecorder(connection).record_unapplied(app, newest)
    health.forget_version()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "waits for its upgrade" in answer.json()["reasons"][0]["reason"]


@pytest.mark.django_db
def test_metrics_are_numbers_without_a_word_of_a_session(client):
    session_row("zanzibar", model="zanzibar-1", agent="zanzibar")
    client.get("/no-such-page/zanzibar")
    client.get("/?q=zanzibar")
    page = client.get("/metrics")
    assert page["Content-Type"].startswith("text/plain; version=0.0.4")
    text = page.content.decode()
    assert "inspector_sessions 1\n" in text
    assert 'inspector_requests_total{view="home",status="200"}' in text
    assert 'inspector_requests_total{view="none",status="404"}' in text
    assert "zanzibar" not in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0


def test_every_answer_is_in_one_bucket_and_all_above_it():
    requests = AnsweredRequests()
    for seconds in (0.001, 0.02, 0.3, 60.0):
        requests.count("home", 200, seconds)
    lines = list(requests.lines())
    assert 'inspector_request_seconds_bucket{view="home",le="0.01"} 1' in lines
    assert 'inspector_request_seconds_bucket{view="home",le="0.5"} 3' in lines
    assert 'inspector_request_seconds_bucket{view="home",le="10"} 3' in lines
    assert 'inspector_request_seconds_bucket{view="home",le="+Inf"} 4' in lines
    assert 'inspector_request_seconds_count{view="home"} 4' in lines


@pytest.mark.django_db
def test_metrics_ask_for_their_token(client, settings):
    settings.METRICS_TOKEN = "s3cret-token"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer s3cret-token"}).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("reached", [{"TEAM": True}, {"BIND": "0.0.0.0"}])
def test_without_a_token_metrics_are_for_this_machine_alone(client, settings, reached):
    for name, value in reached.items():
        setattr(settings, name, value)
    assert client.get("/metrics").status_code == 404


def test_a_line_of_the_log_is_one_json_object_without_tokens_and_control_characters():
    record = logging.LogRecord("django.request", logging.WARNING, "x", 1, "Not Found: %s", ("/r/" + "A" * 43,), None)
    line = JsonFormatter().format(record)
    assert json.loads(line)["message"] == "Not Found: /r/…"
    assert json.loads(line)["level"] == "WARNING"
    hostile = logging.LogRecord("x", logging.ERROR, "x", 1, "a\nb\x1b[31m\u2028" + "z" * 5_000, None, None)
    line = JsonFormatter().format(hostile)
    assert line.isprintable()
    assert len(json.loads(line)["message"]) <= 2_000


def test_an_error_is_in_the_same_object():
    try:
        raise ValueError("what went wrong")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "it broke", None, sys.exc_info())
    assert "ValueError: what went wrong" in json.loads(JsonFormatter().format(record))["error"]


def test_a_request_for_another_host_is_one_warning_without_a_traceback(client, caplog):
    assert client.get("/", headers={"host": "evil.invalid"}).status_code == 400
    (record,) = [item for item in caplog.records if item.name == "django.security.DisallowedHost"]
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert "evil.invalid" in record.getMessage()


@pytest.mark.once
def test_the_check_for_production_has_nothing_to_complain_about(tmp_path):
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = {"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path), **PRODUCTION}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def found(about: str) -> list[tuple[str, str]]:
    """What the doctor says about a thing. The database of the suite may be in memory, where no file is checked."""
    return [(line.state, line.words) for line in doctor.examined(lambda: None) if line.about == about]


@pytest.fixture
def private(settings, tmp_path) -> Path:
    tmp_path.chmod(0o700)
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.mark.django_db
def test_a_healthy_installation_gets_no_bad_word(private):
    assert [line for line in doctor.examined(lambda: None) if line.state == doctor.BAD] == []


@pytest.mark.django_db
def test_what_others_can_read_is_named_with_the_remedy(private):
    private.chmod(0o755)
    assert found("data folder") == [("bad", f"{private} can be read by other users: chmod go= {private}")]


@pytest.mark.django_db
def test_recordings_whose_bytes_are_gone_are_counted(private):
    session_row("lost")
    Recording.objects.of(default_project()).create(sha256=f"{STREAM}live", name="live", size=0)  # has no file
    assert found("recordings") == [("bad", "the bytes of 1 of the newest 1,000 are not in the data folder")]


@pytest.mark.django_db
def test_team_mode_without_an_account_is_noted(private, settings):
    settings.TEAM = True
    assert found("accounts")[0][0] == "note"
    person("alice", default_project())
    assert Account.objects.exists()
    assert found("accounts") == []


@pytest.mark.django_db
def test_a_redis_that_does_not_answer_is_bad(private, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert found("Redis")[0][0] == "bad"


@pytest.mark.django_db
def test_a_sign_on_that_nobody_may_vouch_for_is_bad(private, settings):
    settings.SSO_HEADER, settings.PROXIES = "X-User", []
    assert ("bad", "SSO_HEADER is set without PROXIES, so that it is always ignored") in found("settings")


@pytest.mark.django_db
def test_an_openid_provider_that_does_not_answer_is_bad(private, settings):
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.TEAM = "http://127.0.0.1:9", "inspector", True
    state, words = found("single sign-on")[0]
    assert state == "bad"
    assert words.startswith("http://127.0.0.1:9: ConnectionError")


@pytest.mark.once
def test_the_command_says_what_it_found_and_fails_where_something_is_bad(tmp_path):
    tmp_path.chmod(0o755)
    command = [sys.executable, "-m", "inspector.project.cli", "doctor", "--data-dir", str(tmp_path)]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "can be read by other users" in done.stdout
    assert "1 of" in done.stdout.splitlines()[-1]


def test_commands_of_the_engine_are_listed_with_its_own_words():
    assert {name: importlib.import_module(f"guard_core.commands.{name}").HELP for name in ENGINE} == ENGINE
