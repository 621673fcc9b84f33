"""worker list, graph list, run events: what they print, and that scripts can read it."""

import json

from runtime_persist.model.retry import RetryPolicy
from tests.support.graphs import asks, chain, says


def test_workers_are_listed_as_they_reported_themselves(cli, runtime, reported):
    reported("w1", slots=3, active=["a", "b"], hello=["v1", "v2"])
    reported("w2", slots=1, ttl_us=0, hello=["*"])
    found = {one["worker_id"]: one for one in json.loads(cli("worker", "list", "--json").stdout)}
    assert (found["w1"]["state"], found["w1"]["occupied"], found["w1"]["slots"]) == ("alive", 2, 3)
    assert found["w1"]["graphs"] == {"hello": ["v1", "v2"]}
    assert found["w2"]["state"] == "gone"
    shown = cli("worker", "list").stdout
    assert "2/3" in shown
    assert "hello (v1, v2)" in shown


def test_graphs_are_listed_with_their_limits_and_what_is_open(cli, runtime, reported):
    runtime.bind(
        chain({"node": says("x")}), name="hello", version="v7", max_concurrency=2, retry=RetryPolicy(max_attempts=3)
    )
    runtime.bind(chain({"node": asks("why?")}), name="idle")
    for thread_id in ("t", "t", "u"):
        runtime.runs.start("hello", {"log": []}, thread_id=thread_id)
    reported(hello=["v7"])
    hello, idle = json.loads(cli("graph", "list", "--json").stdout)
    assert (hello["graph"], hello["version"], hello["max_concurrency"]) == ("hello", "v7", 2)
    assert (hello["waiting"], hello["active"], hello["workers"]) == (3, 0, 1)
    assert hello["retry_policy"]["max_attempts"] == 3
    assert (idle["graph"], idle["max_concurrency"], idle["waiting"], idle["workers"]) == ("idle", None, 0, 0)
    assert "v7" in cli("graph", "list").stdout


def test_events_are_a_line_each_and_can_be_gone_on_with(cli, runtime):
    runtime.bind(chain({"node": says("x")}), name="hello")
    run = runtime.runs.start("hello", {"log": []})
    lines = cli("run", "events", run.run_id).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["run.created", "run.queued"]
    (second,) = cli("run", "events", run.run_id, "--after", "1", "--json").stdout.splitlines()
    assert (json.loads(second)["seq"], json.loads(second)["type"]) == (2, "run.queued")
    cli("run", "cancel", run.run_id)
    followed = cli("run", "events", run.run_id, "--follow", "--json").stdout.splitlines()
    assert json.loads(followed[-1])["type"] == "run.cancelled"
