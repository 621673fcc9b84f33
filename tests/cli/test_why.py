"""run why: what it says of real runs, in whatever state they are."""

import json

import pytest

from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.engine import domains, ownership, requests
from runtime_persist.engine import run as flow
from runtime_persist.worker import Worker
from tests.support.graphs import asks, chain, config, fails, says
from tests.support.journal import Outside
from tests.support.leases import run_out


@pytest.fixture
def why(cli):
    def asked(run_id):
        found = cli("run", "why", run_id, "--json")
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    return asked


def works(runtime, graphs):
    Worker(runtime, graphs, poll_seconds=0.01, report=lambda what, facts: None).run(until_idle=True)


def test_a_queued_run_says_what_stands_before_it_and_who_could_take_it(cli, runtime, why, reported):
    runtime.bind(chain({"node": says("x")}), name="hello", version="v1")
    first, second = (runtime.runs.start("hello", {"log": []}, thread_id="t") for _ in range(2))
    other = runtime.runs.start("hello", {"log": []}, scope="ledger")
    assert why(first.run_id)["situation"] == "no_worker"
    reported("mailer", mail=["*"])
    assert why(first.run_id)["situation"] == "no_worker_has_its_graph"
    reported("older", hello=["v0"])
    assert why(first.run_id)["situation"] == "no_worker_has_its_version"
    reported("full", slots=1, active=["x"], hello=["v1"])
    assert why(first.run_id)["situation"] == "no_slot"
    reported("free", hello=["*"])
    found = why(first.run_id)
    assert found["situation"] == "next"
    assert [(one["worker_id"], one["could"]) for one in found["workers"]] == [
        ("free", True),
        ("full", False),
        ("mailer", False),
        ("older", False),
    ]
    behind = why(second.run_id)
    assert (behind["situation"], behind["awaits"]) == ("behind_its_thread", f"the end of {first.run_id}")
    assert why(other.run_id)["situation"] == "behind_others"
    assert cli("run", "now", other.run_id).exit_code == 0
    assert why(other.run_id)["situation"] == "next"
    runtime.bind(chain({"node": says("x")}), name="hello", version="v1", max_concurrency=1)
    runtime.lease(thread_id="another")
    raw_graph = runtime.bind(
        chain({"node": lambda _: {"log": [why(first.run_id)["situation"]]}}), name="hello", version="v1"
    )
    assert raw_graph.invoke({"log": []}, config("a call"))["log"] == ["graph_is_full"]


def test_a_run_in_execution_says_who_holds_it_and_a_left_one_what_is_not_proved(cli, runtime, why, raw):
    found = []

    def node(_):
        (record,) = runtime.runs.list(thread_id="t")
        found.append(why(record.run_id))
        cli("run", "cancel", record.run_id)
        found.append(why(record.run_id))
        run_out(raw)
        found.append(why(record.run_id))
        return {"log": ["x"]}

    with pytest.raises(RuntimeError):
        runtime.bind(chain({"node": node}), name="g").invoke({"log": []}, config("t"))
    assert [one["situation"] for one in found] == ["running", "stopping_live", "stopping_left"]
    assert all(runtime.engine.worker_id in one["lease"] for one in found)
    held = runtime.lease(thread_id="by hand")
    assert why(held.run_id)["situation"] == "running"
    run_out(raw)
    assert why(held.run_id)["situation"] == "manual_left"


def test_a_question_is_shown_and_answered_once(cli, runtime, why):
    graphs = {"ask": chain({"ask": asks("pay 42.00?")})}
    runtime.bind(graphs["ask"], name="ask")
    run = runtime.runs.start("ask", {"log": []})
    works(runtime, graphs)
    found = why(run.run_id)
    assert found["situation"] == "asks_a_person"
    assert "pay 42.00?" in found["because"]
    assert cli("run", "resume", run.run_id, "--value", '"yes"', "--by", "ada").stdout == "queued\n"
    again = cli("run", "resume", run.run_id, "--value", '"no"')
    assert (again.exit_code, again.stderr.partition(":")[0]) == (EXIT_CODES["conflict"], "ALREADY_ANSWERED")
    works(runtime, graphs)
    assert json.loads(cli("run", "result", run.run_id, "--json").stdout)["log"] == ["yes"]
    assert why(run.run_id)["situation"] == "succeeded"


def test_an_unknown_call_is_found_shown_and_settled(cli, runtime, why, raw):
    class Losing(Outside):
        def call(self, what, idempotency_key):
            receipt = super().call(what, idempotency_key)
            if len(self.calls) == 1:
                run_out(raw)
            return receipt

    outside = Losing()
    charge = outside.charge()
    graphs = {"pay": chain({"node": lambda _: {"log": [charge("a")["receipt"]]}})}
    with pytest.raises(RuntimeError):
        runtime.bind(graphs["pay"], name="pay").invoke({"log": []}, config("t"))
    (record,) = runtime.runs.list(thread_id="t")
    left = why(record.run_id)
    assert (left["situation"], len(left["pending"])) == ("left", 1)
    works(runtime, graphs)
    found = why(record.run_id)
    assert found["situation"] == "asks_about_an_operation"
    (unknown,) = json.loads(cli("op", "list", "--unknown", "--json").stdout)
    assert (unknown["name"], unknown["shown"], unknown["run_id"]) == ("charge", "unknown", record.run_id)
    assert f"op show {unknown['operation_id']}" in [one["command"] for one in found["do"]]
    shown = json.loads(cli("op", "show", unknown["operation_id"], "--json").stdout)
    assert [one["shown"] for one in shown["tries"]] == ["unknown"]
    assert shown["idempotency_key"] == outside.keys[0]
    settled = cli("op", "resolve", unknown["operation_id"], "--happened", "--result", '{"receipt": 7}', "--json")
    assert json.loads(settled.stdout) == {"operation_id": unknown["operation_id"], "status": "queued"}
    works(runtime, graphs)
    assert (json.loads(cli("run", "result", record.run_id).stdout)["log"], outside.calls) == ([7], ["a"])
    assert json.loads(cli("op", "list", "--unknown", "--json").stdout) == []
    (listed,) = json.loads(cli("op", "list", "--run", record.run_id, "--json").stdout)
    assert (listed["status"], listed["shown"]) == ("succeeded", "succeeded")


def test_a_takeover_that_cannot_be_proved_safe_says_what_stands_in_its_way_and_what_to_say(cli, runtime, why, raw):
    graphs = {"g": chain({"node": says("x")})}
    runtime.bind(graphs["g"], name="g")
    asked = requests.request(runtime.engine, runtime.checkpointer.serde, "g", {"log": []}, thread_id="t")
    owned = flow(ownership.start(runtime.engine, runtime.checkpointer.serde, asked, "t"))
    runtime.engine.heartbeats.remove(owned)
    domain_id = flow(domains.open_domain(owned, "sandbox", {"name": "box-7"}))
    run_out(raw)
    run_id = owned.lease.run_id
    assert why(run_id)["situation"] == "left"
    works(runtime, graphs)
    run_out(raw)
    found = why(run_id)
    assert found["situation"] == "takeover_blocked"
    assert f"sandbox domain {domain_id}" in found["awaits"]
    advice = [one["command"] for one in found["do"]]
    assert f"domain revoke {run_id} {domain_id} --by NAME" in advice
    assert cli("domain", "revoke", run_id, domain_id, "--by", "ada").exit_code == 0
    works(runtime, graphs)
    assert why(run_id)["situation"] == "succeeded"


def test_ended_runs_say_how_and_a_failed_one_can_be_retried(cli, runtime, why):
    graphs = {"bad": chain({"node": fails(ValueError("no luck"))})}
    runtime.bind(graphs["bad"], name="bad")
    failed = runtime.runs.start("bad", {"log": []}, thread_id="t")
    cancelled = runtime.runs.start("bad", {"log": []}, thread_id="u")
    assert json.loads(cli("run", "cancel", cancelled.run_id, "--json").stdout)["status"] == "cancelled"
    works(runtime, graphs)
    found = why(failed.run_id)
    assert found["situation"] == "failed"
    assert "ValueError: no luck" in found["because"]
    assert why(cancelled.run_id)["situation"] == "cancelled"
    retried = json.loads(cli("run", "retry", failed.run_id, "--json").stdout)
    assert retried["retry_of_run_id"] == failed.run_id
    assert runtime.runs.get(retried["run_id"]).retry_of_run_id == failed.run_id


def test_a_run_that_is_not_there_has_no_explanation(cli, runtime):
    refused = cli("run", "why", "nobody")
    assert (refused.exit_code, refused.stdout) == (EXIT_CODES["invalid"], "")
    assert refused.stderr.startswith("RUN_NOT_FOUND: ")
