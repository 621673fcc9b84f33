"""domain list | revoke, and what inspect shows of domains."""

import json

import pytest

from runtime_persist.engine import domains, ownership, requests
from runtime_persist.engine import run as flow
from tests.support.graphs import chain, says
from tests.support.leases import run_out


@pytest.fixture
def left(runtime, raw):
    """A run that was left with an open domain; both ids."""
    runtime.bind(chain({"node": says("x")}), name="g")
    engine, serde = runtime.engine, runtime.checkpointer.serde
    asked = requests.request(engine, serde, "g", {"log": []}, thread_id="t")
    owned = flow(ownership.start(engine, serde, asked, "t"))
    engine.heartbeats.remove(owned)
    domain_id = flow(domains.open_domain(owned, "sandbox", {"name": "box-7"}))
    run_out(raw)
    return owned.lease.run_id, domain_id


def test_domains_are_listed_and_a_persons_word_is_recorded(cli, left):
    run_id, domain_id = left
    listed = cli("domain", "list", run_id).stdout
    assert all(word in listed for word in (domain_id, "sandbox", "box-7", "open"))
    said = cli("domain", "revoke", run_id, domain_id, "--by", "ann", "--why", "it burnt")
    assert all(word in said.stdout for word in ("revoked", "stated: it burnt", "user:ann"))
    (found,) = json.loads(cli("domain", "list", run_id, "--json").stdout)
    assert (found["state"], found["receipt"]["how"], found["receipt"]["by"]) == ("revoked", "stated", "user:ann")
    assert json.loads(cli("domain", "revoke", run_id, domain_id, "--by", "bob", "--json").stdout) == found


def test_inspect_shows_an_open_domain_and_what_would_be_done_about_it(cli, left):
    run_id, domain_id = left
    shown = cli("inspect", run_id).stdout
    assert "execution domains (1)" in shown
    assert "its revoker is asked" in shown
    found = json.loads(cli("inspect", run_id, "--json").stdout)
    assert [one["domain_id"] for one in found["domains"]] == [domain_id]


def test_unknown_ones_are_told_by_name(cli, left):
    run_id, _ = left
    for arguments, code in (
        (("list", "nobody"), "RUN_NOT_FOUND"),
        (("revoke", run_id, "nothing", "--by", "ann"), "DOMAIN_NOT_FOUND"),
    ):
        result = cli("domain", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith(code)
