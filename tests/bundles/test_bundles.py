"""Recovery bundles: everything that is stored about a run, of one moment, hashed."""

import json

import pytest

from runtime_persist.adapters.workflow import RawSerializer, encoding
from runtime_persist.contentstore import unpack
from runtime_persist.engine import run as flow
from runtime_persist.errors import BundleTooLarge, CheckpointCorrupt, RunNotFound
from runtime_persist.inspector import load_bundle, read_bundle
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.bundles import Limits, content
from runtime_persist.inspector.bundles.verify import parsed
from runtime_persist.inspector.plain import plain
from runtime_persist.queries.bundles import LEFT_OUT, PARTS
from runtime_persist.queries.references import OPERATION_VALUES, RUN_VALUES
from runtime_persist.schema import metadata
from tests.bundles.conftest import CANARY
from tests.support.graphs import chain, config, says


def test_every_table_is_a_part_or_says_why_not():
    parts = {part.table.name for part in PARTS}
    assert parts | LEFT_OUT.keys() == metadata.tables.keys()
    assert not parts & LEFT_OUT.keys()


def test_every_column_that_refers_to_content_is_known():
    assert {part.name: part.values for part in PARTS if part.values} == {
        "runs": RUN_VALUES,
        "operations": OPERATION_VALUES,
        "writes": ("value",),
    }


def test_a_bundle_has_every_row_of_the_run_and_its_values(runtime, raw, run_id, exported):
    found = parsed(exported(run_id))
    for name in ("attempts", "events", "operations", "operation_tries", "receipts", "domains"):
        assert len(found.rows[name]) == raw.value(f"SELECT count(*) FROM rp_{name} WHERE run_id = ?", run_id), name
    assert len(found.rows["checkpoints"]) == len(raw.rows("SELECT * FROM rp_checkpoints"))
    assert len(found.rows["writes"]) == len(raw.rows("SELECT * FROM rp_writes"))
    assert found.rows["writes"], "the question is a pending write"
    serde = RawSerializer()
    loaded = [plain(found.value(serde, value.ref, value.said())) for value in found.values()]
    shown = json.dumps(loaded)
    assert "order-7" in shown
    assert "x" * 300 + "199" in shown


def test_the_view_of_a_bundle_is_the_view_of_the_database(runtime, run_id, exported):
    ours = flow(load_bundle(runtime.engine, runtime.checkpointer.serde, run_id))
    theirs = view_of(parsed(exported(run_id)))
    assert theirs.model_dump(exclude={"database", "question"}) == ours.model_dump(exclude={"database", "question"})
    assert "go on?" in str(theirs.question)


def test_a_run_that_nothing_changed_gives_the_same_bytes_but_for_the_moment(runtime, run_id, exported):
    first, second = (parsed(exported(run_id)).manifest for _ in range(2))
    assert first.model_copy(update={"read_us": 0}) == second.model_copy(update={"read_us": 0})


def test_no_secret_is_in_it_unless_asked_for(run_id, exported):
    def everything(data):
        found = parsed(data)
        parts = [value for rows in found.rows.values() for row in rows for value in row.values()]
        parts += [unpack(row["body"]) for row in found.rows["checkpoints"]]
        parts += found.contents.values()
        parts += [content.joined(one.ref, found.contents.__getitem__, "") for one in found.values()]
        return found, b"\0".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)

    found, data = everything(exported(run_id))
    assert CANARY.encode() not in data
    assert found.manifest.redaction.redacted
    assert found.manifest.redaction.starred > 0
    assert found.manifest.redaction.withheld == 0
    assert b"*" * len(CANARY) in data
    open_, data = everything(exported(run_id, secrets=True))
    assert CANARY.encode() in data
    assert not open_.manifest.redaction.redacted


def test_the_spaces_secret_and_hashes_of_tokens_never_leave(runtime, run_id, exported):
    secret = runtime.engine.coordinator.keys.secret
    found = parsed(exported(run_id, secrets=True))
    values = [value for rows in found.rows.values() for row in rows for value in row.values()]
    assert secret not in values
    assert all("callback_hash" not in row and "thread_hash" not in row for rows in found.rows.values() for row in rows)


def test_without_content_only_what_lies_in_rows_is_there(run_id, exported):
    assert parsed(exported(run_id, without_content=True)).manifest.redaction.withheld, "literals of split values"
    found = parsed(exported(run_id, without_content=True, secrets=True))
    assert found.manifest.content == "none"
    assert not found.contents
    outside = next(value for value in found.values() if value.ref.inline is None)
    with pytest.raises(CheckpointCorrupt, match="is missing"):
        found.value(RawSerializer(), outside.ref, outside.said())


def test_limits_are_kept(run_id, exported):
    for bounds in (Limits(rows=2), Limits(content_bytes=10_000)):
        with pytest.raises(BundleTooLarge):
            exported(run_id, bounds=bounds)
    with pytest.raises(RunNotFound):
        exported("nobody")


def test_missing_content_is_told_with_what_and_where(runtime, raw, run_id, exported):
    found = parsed(exported(run_id, secrets=True))
    address = next(iter(sorted(found.contents)))
    raw.rows("DELETE FROM rp_blobs WHERE address = ?", address)
    with pytest.raises(CheckpointCorrupt, match="is missing") as refused:
        exported(run_id)
    assert refused.value.details["address"] == address.hex()
    assert refused.value.details["where"]


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        ("DELETE FROM rp_events WHERE seq = 2", "events"),
        ("DELETE FROM rp_attempts", "attempts"),
        ("UPDATE rp_runs SET loops_consumed = 1", "tickets"),
        ("DELETE FROM rp_operation_tries", "operation_tries"),
        ("DELETE FROM rp_operations", "operations"),
        ("DELETE FROM rp_checkpoints WHERE checkpoint_id = (SELECT checkpoint_id FROM rp_heads)", "checkpoints"),
        ("UPDATE rp_checkpoints SET parent_id = 'another'", "checkpoints"),
        ("UPDATE rp_writes SET channel = 'another'", "writes"),
    ],
)
def test_a_missing_or_wrong_row_is_told_with_its_part(runtime, raw, run_id, damage, part):
    raw.rows(damage)
    with pytest.raises(CheckpointCorrupt) as refused:
        flow(read_bundle(runtime.engine, run_id))
    assert refused.value.details["part"] == part


def test_the_fork_of_a_long_thread_brings_what_it_began_with_and_no_more(runtime, exported):
    bound = runtime.bind(chain({"a": says("a")}), name="g")
    for _ in range(3):
        bound.invoke({"log": ["in"]}, config("t"))
    newest = runtime.runs.list(thread_id="t")[0].run_id
    found = parsed(exported(newest)).rows["checkpoints"]
    assert {row["run_id"] == newest for row in found} == {True, False}
    assert len([row for row in found if row["run_id"] != newest]) == 1
    assert len(encoding.refs_of(found[-1]["body"])) > 0


def test_a_run_that_went_on_gives_another_bundle(runtime, run_id, exported, tmp_path, cli):
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    first.write_bytes(exported(run_id))
    assert cli("bundle", "diff", str(first), str(first)).stdout.startswith("differences (0)")
    runtime.bind(chain({"x": says("x")}), name="other")
    runtime.runs.cancel(run_id)
    second.write_bytes(exported(run_id))
    found = json.loads(cli("bundle", "diff", str(first), str(second), "--json").stdout)
    changed = {one["column"]: (one["before"], one["after"]) for one in found if one["part"] == "runs"}
    assert changed["status"] == ("waiting_approval", "cancelled")
    assert {one["what"] for one in found if one["part"] == "events"} == {"added"}
