"""The command line: what it prints, what scripts can rely on (JSON, exit codes, stderr), and where it looks."""

import io
import json

import pytest
from click.testing import CliRunner
from rich.console import Console

from runtime_persist import Runtime
from runtime_persist.cli.main import EXIT_CODES, main
from runtime_persist.engine import run
from runtime_persist.errors import RuntimePersistError
from runtime_persist.inspector import load_bundle, render
from tests.fixtures.raw import PostgresRaw
from tests.support.graphs import asks, chain, fails, says

REGISTRY = "tests.support.graphs_registry:registry"


@pytest.fixture
def run_id(runtime, cli):
    """A run of ``hello`` that is queued."""
    runtime.bind(chain({"node": says("hello")}), name="hello")
    started = cli("run", "start", "hello", "--input", '{"log": ["in"]}', "--thread", "t")
    assert started.exit_code == 0, started.output
    return started.stdout.strip()


def worked(cli):
    done = cli("worker", REGISTRY, "--until-idle", "--poll", "0.01")
    assert done.exit_code == 0, done.output
    return done


def test_from_start_to_result(cli, run_id):
    assert cli("run", "show", run_id).stdout.count("queued") == 1
    done = worked(cli)
    assert done.stdout == ""
    assert "claimed" in done.stderr
    assert "finished" in done.stderr
    result = cli("run", "result", run_id)
    assert json.loads(result.stdout) == {"log": ["in", "hello"], "n": 0}
    assert "succeeded" in cli("run", "list").stdout


def test_json_can_be_parsed_and_has_the_record(cli, run_id, runtime):
    started = cli("run", "start", "hello", "--thread", "u", "--key", "k", "--json")
    assert set(json.loads(started.stdout)) == {"run_id", "thread_id"}
    assert json.loads(cli("run", "show", run_id, "--json").stdout) == runtime.runs.get(run_id).model_dump()
    listed = json.loads(cli("run", "list", "--json").stdout)
    assert [run["thread_id"] for run in listed] == ["u", "t"]
    assert [run["thread_id"] for run in json.loads(cli("run", "list", "--thread", "t", "--json").stdout)] == ["t"]
    assert len(json.loads(cli("run", "list", "--limit", "1", "--json").stdout)) == 1


def test_the_same_key_prints_the_same_run(cli, run_id):
    ids = {cli("run", "start", "hello", "--key", "k").stdout for _ in range(2)}
    assert len(ids) == 1
    refused = cli("run", "start", "hello", "--key", "k", "--input", '{"log": [1]}')
    assert (refused.exit_code, refused.stdout) == (EXIT_CODES["conflict"], "")
    assert refused.stderr.startswith("IDEMPOTENCY_MISMATCH: ")


def test_input_comes_from_standard_input(cli, run_id):
    started = cli("run", "start", "hello", "--input", "-", given='{"log": ["piped"]}')
    worked(cli)
    assert json.loads(cli("run", "result", started.stdout.strip()).stdout)["log"] == ["piped", "hello"]


def test_cancel_prints_the_status(cli, run_id):
    assert cli("run", "cancel", run_id).stdout == "cancelled\n"
    refused = cli("run", "result", run_id)
    assert refused.exit_code == EXIT_CODES["failed"]
    assert refused.stderr.startswith("RUN_CANCELLED: ")


def test_inspect_shows_the_story_and_its_json_the_facts(cli, run_id):
    assert "writes the start fence and starts it" in cli("inspect", run_id).stdout
    worked(cli)
    shown = cli("inspect", run_id).stdout
    assert "succeeded" in shown
    assert "attempts" in shown
    facts = json.loads(cli("inspect", run_id, "--json").stdout)
    assert facts["run"]["run_id"] == run_id
    assert [attempt["cause"] for attempt in facts["attempts"]] == ["initial"]
    assert facts["events"][-1]["type"] == "run.succeeded"
    assert len(facts["checkpoints"]) == 3


def test_inspect_says_that_it_shows_only_the_newest_of_what_a_run_did(runtime, run_id, cli):
    worked(cli)
    found = run(load_bundle(runtime.engine, runtime.checkpointer.serde, run_id, rows_max=2))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render.bundle(found))
    shown = console.export_text()
    told = len(list(runtime.runs.events(run_id)))
    assert f"events: the newest 2 of {told}" in shown
    assert "checkpoints (the newest 2; there are older ones)" in shown
    assert "operation journal (0)" in shown


def test_inspect_shows_why_a_run_waits(cli, runtime):
    runtime.bind(chain({"ask": asks("why?")}), name="asking")
    started = runtime.runs.start("asking", {"log": []}, thread_id="t")
    worked(cli)
    assert "why?" in cli("inspect", started.run_id).stdout
    pending = cli("run", "result", started.run_id)
    assert pending.exit_code == EXIT_CODES["unknown"]
    assert "why?" in pending.stderr


def test_errors_are_one_line_on_stderr_with_the_code_of_their_kind(cli, runtime, run_id, tmp_path):
    broken = runtime.bind(chain({"node": fails(ValueError("no luck"))}), name="broken")
    with pytest.raises(ValueError, match="no luck"):
        broken.invoke({"log": []}, {"configurable": {"thread_id": "bad"}})
    (failed,) = runtime.runs.list(thread_id="bad")
    cases = [
        (("run", "show", "nobody"), "RUN_NOT_FOUND", "invalid"),
        (("inspect", "nobody"), "RUN_NOT_FOUND", "invalid"),
        (("run", "start", "no-such-graph"), "UNKNOWN_GRAPH", "invalid"),
        (("run", "start", "hello", "--input", "{"), "INVALID_INPUT", "invalid"),
        (("run", "start", "hello", "--thread", ""), "INVALID_THREAD_ID", "invalid"),
        (("run", "list", "--limit", "-1"), "INVALID_INPUT", "invalid"),
        (("worker", "no_such_module:registry"), "INVALID_INPUT", "invalid"),
        (("worker", REGISTRY, "--slots", "0"), "INVALID_INPUT", "invalid"),
        (("run", "list", "--url", "mysql://x/y"), "INVALID_URL", "invalid"),
        (("run", "list", "--url", f"sqlite:///{tmp_path}/empty.db"), "SCHEMA_MISSING", "invalid"),
        (("run", "result", run_id), "RESULT_PENDING", "unknown"),
        (("run", "result", failed.run_id), "RUN_FAILED", "failed"),
    ]
    for arguments, code, kind in cases:
        refused = cli(*arguments)
        assert (arguments, refused.exit_code, refused.stdout) == (arguments, EXIT_CODES[kind], "")
        assert refused.stderr.startswith(f"{code}: "), refused.stderr
        assert "Traceback" not in refused.stderr


def test_every_kind_of_error_has_an_exit_code():
    def kinds(kind):
        yield kind.kind
        for child in kind.__subclasses__():
            yield from kinds(child)

    assert set(kinds(RuntimePersistError)) == set(EXIT_CODES)
    assert len(set(EXIT_CODES.values()) | {0, 1}) == len(EXIT_CODES) + 2


@pytest.mark.parametrize("arguments", [(), ("run",), ("db",)])
def test_without_a_command_the_help_is_shown(cli, arguments):
    assert "Usage:" in cli(*arguments).output


def test_the_url_may_be_an_option(cli, shared_url, run_id):
    shown = cli("run", "show", run_id, "--url", shared_url, "--json", url="sqlite:///never-opened.db")
    assert json.loads(shown.stdout)["run_id"] == run_id


def test_upgrade_makes_the_tables_and_says_the_version(empty_url):
    def db(*arguments):
        return CliRunner().invoke(main, ["db", *arguments, "--url", empty_url], catch_exceptions=False)

    assert db("current").stdout == "none\n"
    version = db("upgrade").stdout
    assert db("upgrade").stdout == version == db("current").stdout
    with Runtime.open(empty_url, auto_setup=False) as runtime:
        assert runtime.runs.list() == []


def test_the_printed_sql_makes_the_tables(empty_url):
    import sqlite3

    script = CliRunner().invoke(main, ["db", "sql", "--url", empty_url], catch_exceptions=False).stdout
    if empty_url.startswith("sqlite"):
        connection = sqlite3.connect(empty_url.removeprefix("sqlite:///"))
        connection.executescript(script)
        connection.close()
    else:
        raw = PostgresRaw(empty_url)
        raw._runner.run(raw.connection.execute(script))
        raw.close()
    with Runtime.open(empty_url, auto_setup=False) as runtime:
        assert runtime.runs.list() == []
    current = CliRunner().invoke(main, ["db", "current", "--url", empty_url], catch_exceptions=False)
    upgraded = CliRunner().invoke(main, ["db", "upgrade", "--url", empty_url], catch_exceptions=False)
    assert current.stdout == upgraded.stdout


def test_a_run_is_started_with_a_deadline_and_attempts_and_moved_to_the_front(cli, runtime):
    runtime.bind(chain({"node": says("hello")}), name="hello")
    made = [
        json.loads(cli("run", "start", "hello", "--deadline", "60", "--attempts", "2", "--json").stdout)["run_id"]
        for _ in range(2)
    ]
    record = runtime.runs.get(made[1])
    assert record.deadline_us == record.created_us + 60_000_000
    assert cli("run", "now", made[1]).stdout.strip() == "queued"
    worked(cli)
    ended = {run_id: runtime.runs.get(run_id).finished_us for run_id in made}
    assert ended[made[1]] < ended[made[0]]
    assert cli("run", "now", made[1]).exit_code == EXIT_CODES["conflict"]
