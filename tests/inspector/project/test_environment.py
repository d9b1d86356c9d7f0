"""Settings come from the environment, and a wrong one is told in a sentence that names it."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from inspector.project import environment as env
from inspector.project.settings import database


def test_an_absent_or_blank_variable_is_the_default(monkeypatch):
    monkeypatch.setenv("X", "  ")
    assert env.text("X", "kept") == "kept"
    assert env.whole("X", 7, 0, 9) == 7
    assert env.flag("X", True) is True
    assert env.names("X", ["a"]) == ["a"]


@pytest.mark.parametrize(("value", "meaning"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("off", False)])
def test_a_flag_is_yes_or_no(value, meaning, monkeypatch):
    monkeypatch.setenv("X", value)
    assert env.flag("X") is meaning


def test_a_secret_is_in_the_variable_or_in_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("X", "plain")
    assert env.secret("X") == "plain"
    monkeypatch.setenv("X_FILE", str(tmp_path / "secret"))
    with pytest.raises(ImproperlyConfigured, match="X and X_FILE are both set"):
        env.secret("X")
    monkeypatch.delenv("X")
    with pytest.raises(ImproperlyConfigured, match=r"X_FILE=.*cannot be read"):
        env.secret("X")
    (tmp_path / "secret").write_text("from the file\n")
    assert env.secret("X") == "from the file"


@pytest.mark.parametrize(
    "value", ["", "https://login.example", "https://login.example:8443/realms/a/", "http://[::1]:80"]
)
def test_an_issuer_has_an_address(value, monkeypatch):
    monkeypatch.setenv("X", value)
    assert env.issuer("X") == value


@pytest.mark.parametrize(
    "value",
    ["login.example", "http://login.example", "https://a@b", "https://a/?b", "https://a/#b", "http://127.0.0.1@b"],
)
def test_what_is_no_issuer_is_told(value, monkeypatch):
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match="not the address of an issuer"):
        env.issuer("X")


def test_a_variable_whose_extra_is_not_installed_names_it():
    env.check_extra("X", "postgres", "json")
    with pytest.raises(ImproperlyConfigured, match=r"X needs the extra `postgres`.*compaction-inspector\[postgres\]"):
        env.check_extra("X", "postgres", "no_such_module")


@pytest.mark.parametrize("value", ["maybe", "2"])
def test_a_flag_that_is_neither_is_told(value, monkeypatch):
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match="X="):
        env.flag("X")


@pytest.mark.parametrize("value", ["ten", "-1", "10", "1.5", "१"])
def test_a_number_outside_its_range_is_told(value, monkeypatch):
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=r"X=.* from 0 to 9"):
        env.whole("X", 0, 0, 9)


def test_sqlite_waits_for_its_one_writer():
    settings = database("")
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in settings["OPTIONS"]["init_command"]
    assert "ATOMIC_REQUESTS" not in settings


def test_a_postgresql_address_is_taken_apart():
    settings = database("postgresql://ann:p%40ss@db.example:5433/inspector")
    assert (settings["USER"], settings["PASSWORD"], settings["HOST"], settings["PORT"]) == (
        "ann",
        "p@ss",
        "db.example",
        "5433",
    )
    assert settings["NAME"] == "inspector"


@pytest.mark.parametrize("address", ["mysql://a/b", "postgresql://host", "nonsense"])
def test_another_address_is_told(address):
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        database(address)


def test_origins_are_schemes_and_hosts(monkeypatch):
    monkeypatch.setenv("X", "https://wiki.example, http://127.0.0.1:8080")
    assert env.origins("X") == ["https://wiki.example", "http://127.0.0.1:8080"]


@pytest.mark.parametrize(
    "value", ["wiki.example", "https://wiki.example/", "https://*", "'self'", "https://a; script-src *"]
)
def test_what_is_no_origin_is_told(value, monkeypatch):
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match="an origin is written"):
        env.origins("X")
