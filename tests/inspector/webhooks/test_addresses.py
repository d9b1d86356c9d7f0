"""Where messages may go: out, to public machines over TLS, and to what the operator allows."""

from __future__ import annotations

import ipaddress

import pytest

from inspector.webhooks.addresses import AddressNotAllowed, Target, check, resolved, target_of

LOCAL = ["127.0.0.0/8"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "begins with https://"),
        ("ftp://hooks.example/", "begins with https://"),
        ("file:///etc/passwd", "begins with https://"),
        ("https://", "names a host"),
        ("http://hooks.example/", "without TLS"),
        ("https://me:secret@hooks.example/", "neither a password"),
        ("https://hooks.example/#part", "nor a fragment"),
        ("https://hooks.example:99999/", "This is not an address"),
        ("https://[::1", "This is not an address"),
        ("https://hooks.example/a b", "and no spaces"),
        ("https://hooks.example/\r\nHost: x", "and no spaces"),
        ("https://münchen.example/", "ASCII"),
        (f"https://hooks.example/{'x' * 500}", "at most 500"),
        ("https://127.0.0.1/", "not a public address"),
        ("https://[::1]/", "not a public address"),
        ("https://[::ffff:127.0.0.1]/", "not a public address"),
        ("https://[64:ff9b::7f00:1]/", "not a public address"),
        ("https://[2002:7f00:1::]/", "not a public address"),
        ("https://169.254.169.254/latest/meta-data", "not a public address"),
        ("https://10.0.0.1/", "not a public address"),
        ("https://100.64.0.1/", "not a public address"),
        ("https://0.0.0.0/", "not a public address"),
        ("https://224.0.0.1/", "not a public address"),
        ("https://8.8.8.8:8443/", "Port 8443"),
    ],
)
def test_what_does_not_lead_out_over_tls_is_refused_with_the_reason(url, words):
    with pytest.raises(AddressNotAllowed) as refused:
        target_of(url)
    assert words in str(refused.value)


@pytest.mark.parametrize("host", ["169.254.169.254", "[::1]"])
def test_a_host_that_is_an_address_is_named_once(host):
    with pytest.raises(AddressNotAllowed) as refused:
        target_of(f"https://{host}/")
    assert str(refused.value).startswith(f"{host.strip('[]')} is not a public address.")


def test_an_address_is_taken_in_its_parts():
    assert target_of("https://Hooks.example/a/b?c=d") == Target(True, "hooks.example", 443, "/a/b?c=d")
    assert target_of("https://hooks.example").path == "/"
    assert target_of("https://[2606:4700::1111]/").header == "[2606:4700::1111]"


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001"])
def test_a_name_is_judged_by_what_it_leads_to(host):
    target = target_of(f"https://{host}/")
    with pytest.raises(AddressNotAllowed, match="not a public address"):
        resolved(target)


def test_networks_of_the_operator_may_be_reached_also_without_tls(settings):
    settings.WEBHOOK_NETWORKS = LOCAL
    assert resolved(target_of("http://127.0.0.1:8123/x")) == ["127.0.0.1"]
    with pytest.raises(AddressNotAllowed, match="not a public address"):
        target_of("http://10.0.0.1/")
    with pytest.raises(AddressNotAllowed, match="only over https://"):
        check(Target(False, "one.example", 80, "/"), ipaddress.ip_address("1.1.1.1"))


def test_where_hosts_are_listed_no_other_one_is_set_or_sent_to(settings):
    earlier = target_of("https://other.example/")
    settings.WEBHOOK_HOSTS = ["hooks.example", "Alerts.example:8443"]
    assert target_of("https://hooks.example/x").port == 443
    assert target_of("https://alerts.example:8443/x").header == "alerts.example:8443"
    for url in ("https://other.example/", "https://hooks.example:444/", "https://alerts.example/"):
        with pytest.raises(AddressNotAllowed, match="not among the hosts"):
            target_of(url)
    with pytest.raises(AddressNotAllowed, match="not among the hosts"):
        resolved(earlier)
