"""bundle import: a read-only space that says what the file says, and is never looked at while it is half there."""

import asyncio
import json

import pytest

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import RawSerializer
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.engine import Engine
from runtime_persist.engine import run as flow
from runtime_persist.errors import InvalidInput, SpaceIncomplete, SpaceReadOnly
from runtime_persist.inspector import load_bundle
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.bundles import export, importing
from runtime_persist.inspector.bundles.differ import differences
from runtime_persist.inspector.bundles.verify import parsed
from runtime_persist.queries.references import OPERATION_VALUES, RUN_VALUES
from runtime_persist.worker import Worker
from tests.bundles import programs
from tests.bundles.conftest import CANARY
from tests.support.graphs import chain, config, says

REFERENCES = set(RUN_VALUES) | set(OPERATION_VALUES)
"""Columns that name content by its address, which another space's secret makes another one."""


@pytest.fixture
def file(run_id, exported, tmp_path):
    path = tmp_path / "run.zip"
    path.write_bytes(exported(run_id))
    return path


@pytest.fixture
def imported(cli, file):
    """The space of the file, in the database it came from."""
    done = cli("bundle", "import", str(file), "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def looked_at(shared_url, imported):
    with Runtime.open(shared_url, space=imported["space"]) as runtime:
        yield runtime


def test_it_holds_every_row_and_value_of_the_file_and_no_secret(looked_at, imported, run_id, file):
    there = parsed(b"".join(flow(export(looked_at.engine, run_id))))
    here = parsed(file.read_bytes())
    assert {name: len(rows) for name, rows in there.rows.items()} == {
        name: len(rows) for name, rows in here.rows.items()
    }
    changed = {(one.part, one.column) for one in differences(here, there) if one.column != "fingerprint"}
    assert {column for _, column in changed} <= {"value"} | {f"channel {name}" for name in ("log",)} | REFERENCES
    assert there.manifest.redaction == here.manifest.redaction, "what was redacted stays marked"
    unredacted = parsed(b"".join(flow(export(looked_at.engine, run_id, secrets=True))))
    assert unredacted.manifest.redaction == here.manifest.redaction
    assert unredacted.manifest.source == here.manifest.source
    assert there.manifest.read_us == imported["as_of_us"] == here.manifest.read_us
    saved = str(looked_at.checkpointer.get_tuple(config("t")))
    assert f"{'x' * 300}199" in saved
    assert CANARY not in saved
    serde = RawSerializer()
    assert [there.value(serde, one.ref, one.said()) for one in there.values()] == [
        here.value(serde, one.ref, one.said()) for one in here.values()
    ]


def test_it_says_what_the_file_says_as_of_the_moment_of_the_file(looked_at, run_id, file, cli, imported):
    here = view_of(parsed(file.read_bytes()))
    there = flow(load_bundle(looked_at.engine, looked_at.checkpointer.serde, run_id))
    assert there.model_dump(exclude={"database", "question"}) == here.model_dump(exclude={"database", "question"})
    for arguments in (
        ("run", "show", run_id),
        ("run", "events", run_id),
        ("lease", "show", run_id),
        ("thread", "list"),
    ):
        ours = cli(*arguments, "--json", "--bundle", str(file)).stdout
        theirs = cli(*arguments, "--json", "--space", imported["space"]).stdout
        assert theirs == ours, arguments


def test_nothing_is_claimed_resumed_or_written_there(looked_at, run_id, shared_url, imported, raw, cli):
    before = rows_of(raw, imported["space"])
    graph = chain({"node": says("x")})
    refused = [
        lambda: looked_at.bind(graph, name="g").invoke({"log": []}, config("t")),
        lambda: looked_at.runs.start("g", {"log": []}),
        lambda: looked_at.runs.resume(run_id, "yes"),
        lambda: looked_at.runs.cancel(run_id),
        lambda: looked_at.runs.retry(run_id),
        lambda: looked_at.lease(thread_id="t"),
        lambda: looked_at.checkpointer.delete_thread("t"),
        lambda: chain({"node": says("x")}, checkpointer=looked_at.checkpointer).invoke({"log": []}, config("t")),
        lambda: asyncio.run(looked_at.runs.acancel(run_id)),
    ]
    for number, act in enumerate(refused):
        try:
            act()
        except SpaceReadOnly:
            continue
        pytest.fail(f"{number} was not refused")
    worker = cli("worker", "tests.support.graphs_registry:registry", "--until-idle", "--space", imported["space"])
    assert worker.exit_code == EXIT_CODES["conflict"]
    assert "SPACE_READ_ONLY" in worker.stderr
    assert looked_at.checkpointer.collect_content().removed == 0
    assert rows_of(raw, imported["space"]) == before


def rows_of(raw, space):
    tables = (
        "spaces",
        "runs",
        "attempts",
        "events",
        "checkpoints",
        "writes",
        "blobs",
        "receipts",
        "graphs",
        "instances",
    )
    return {name: sorted(map(str, raw.rows(f"SELECT * FROM rp_{name} WHERE space = ?", space))) for name in tables}


def test_workers_and_lists_of_other_spaces_do_not_see_it(runtime, imported, run_id):
    assert [one.run_id for one in runtime.runs.list()] == [run_id]
    seen = []
    Worker(runtime, {"g": chain({"node": says("x")})}, poll_seconds=0.01, report=lambda *said: seen.append(said)).run(
        until_idle=True
    )
    assert not [one for one in seen if "claimed" in one]


def test_a_second_import_writes_nothing_and_another_bundle_is_refused(
    cli, file, imported, raw, runtime, run_id, exported
):
    before = rows_of(raw, imported["space"])
    again = json.loads(cli("bundle", "import", str(file), "--json").stdout)
    assert (again.pop("new"), again) == (False, {name: imported[name] for name in imported if name != "new"})
    assert rows_of(raw, imported["space"]) == before
    runtime.runs.cancel(run_id)
    file.write_bytes(exported(run_id))
    for space in (imported["space"], "default"):
        refused = cli("bundle", "import", str(file), "--space", space)
        assert (refused.exit_code, refused.stdout) == (EXIT_CODES["conflict"], "")
        assert refused.stderr.splitlines()[-1].startswith("SPACE_TAKEN: ")
    assert rows_of(raw, imported["space"]) == before


def test_a_killed_import_is_not_looked_at_and_is_finished_by_importing_again(fork, shared_url, file, run_id, cli):
    last = 2
    space = f"killed behind page {last}"
    child = fork(programs.imports, shared_url, str(file), space, 20)
    for _ in range(last):
        done, total = child.until("stored")
        if done < last:
            child.give_the_word()
    assert last < total
    child.kill()
    with pytest.raises(SpaceIncomplete):
        Runtime.open(shared_url, space=space)
    for arguments in (("run", "show", run_id), ("run", "why", run_id), ("thread", "list")):
        refused = cli(*arguments, "--space", space)
        assert refused.stderr.startswith("SPACE_INCOMPLETE: ")
    again = fork(programs.imports, shared_url, str(file), space, 20)  # pages that are there are not stored again
    for _ in range(total):
        again.until("stored")
        again.give_the_word()
    again.result()
    shown = cli("thread", "show", "t", "--channel", "log", "--space", space).stdout
    assert shown == cli("thread", "show", "t", "--channel", "log", "--bundle", str(file)).stdout


def test_what_has_no_content_is_not_imported(shared_url, run_id, exported):
    engine = Engine(shared_url, space="without", auto_setup=False)
    try:
        with pytest.raises(InvalidInput, match="content was left out"):
            flow(importing.import_bundle(engine, parsed(exported(run_id, without_content=True))))
    finally:
        engine.close()


def test_an_empty_database_gets_its_tables(cli, file, tmp_path, run_id):
    url = f"sqlite:///{tmp_path}/support.db"
    done = cli("bundle", "import", str(file), "--json", url=url)
    space = json.loads(done.stdout)["space"]
    assert (
        json.loads(cli("run", "why", run_id, "--json", "--space", space, url=url).stdout)["shown"] == "waiting_approval"
    )
