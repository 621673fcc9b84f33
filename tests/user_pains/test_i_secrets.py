"""Forged rows, rows that are not encrypted, and secrets in other places than their own (I1, I2, I4, I5)."""

import json
import logging
import sys

import ormsgpack
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, SecretStr

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import AcceptPlainRows, RawSerializer, ValueSerializer, WorkflowCheckpointAdapter
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.contentstore import pack, unpack
from runtime_persist.engine import run
from runtime_persist.errors import RuntimePersistError, UntrustedType
from runtime_persist.inspector.plain import plain
from runtime_persist.inspector.thread import load_bytes, load_thread, load_value
from runtime_persist.model.keys import fingerprint
from tests.importing.conftest import stock, stock_databases, stock_dsn  # noqa: F401
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import chain, config
from tests.support.stored import files, stored
from tests.values.crafted import CRAFTED, Forger, marker  # noqa: F401
from tests.values.graphs import keeps
from tests.values.test_secrets import Rot, encrypted

CANARY = "hunter2CANARY-5e1d"


# --- I1 ---------------------------------------------------------------------------------------------------------------


def test_looking_at_a_forged_value_imports_nothing_and_calls_nothing(shared_url, cli, marker, monkeypatch):  # noqa: F811
    """I1: as fields where there are any, else a typed error; its size is shown in any case. No variable is needed."""
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=Forger()) as forger:
        for name in CRAFTED:
            keeps(lambda name=name: name, checkpointer=forger).invoke({}, at(name))
    with Runtime.open(shared_url) as runtime:
        for name, ((_, data), _) in CRAFTED.items():
            (namespace,) = run(load_thread(runtime.engine, name)).namespaces
            assert {one.channel: one.bytes for one in namespace.channels}["value"] == len(data)
            ((_, found),) = run(load_bytes(runtime.engine, name, "value"))
            assert found == data
            try:
                json.dumps(plain(run(load_value(runtime.engine, RawSerializer(), name, "value"))))
            except RuntimePersistError as error:
                assert error.kind == "corrupt", name  # noqa: PT017 (some are shown)
    shown = json.loads(cli("thread", "show", "own model", "--channel", "value").stdout)
    assert shown == [{"type": "pmod.K", "fields": {"a": 1}}]
    refused = cli("thread", "show", "pickle", "--channel", "value")
    assert refused.exit_code == EXIT_CODES["corrupt"]
    assert refused.stderr.startswith("UNTRUSTED_TYPE")
    assert "pmod" not in sys.modules
    assert not marker.exists()
    assert not (marker.parent / "ran").exists()


def test_importing_threads_with_forged_values_imports_no_module_and_calls_nothing(stock, sqlite_url, cli, marker):  # noqa: F811
    """I1: such a thread is named with its error, the others are imported."""
    with stock.opens() as saver:
        for thread_id in (*CRAFTED, "good"):
            made = new_checkpoint({"a": 1})
            place = saver.put(at(thread_id), made, {}, made["channel_versions"])
            saver.serde, own = Forger(), saver.serde
            saver.put_writes(place, [("value", thread_id)], "task")
            saver.serde = own
    done = cli("import", "--from", stock.url, "--url", sqlite_url, "--json")
    told = json.loads(done.stdout)
    assert told["threads"] == ["good"]
    assert set(told["failed"]) == set(CRAFTED)
    assert done.exit_code == EXIT_CODES["corrupt"]
    assert "pmod" not in sys.modules
    assert not marker.exists()
    assert not (marker.parent / "ran").exists()


# --- I2 ---------------------------------------------------------------------------------------------------------------


def forge(raw, thread_id):
    """Replace the stored value by a plain one, with the fingerprint the row must have: no key is needed for that."""
    row = raw.one(
        "SELECT checkpoint_id, parent_id, body, metadata FROM rp_checkpoints WHERE thread_id = ? "
        "ORDER BY checkpoint_id DESC LIMIT 1",
        thread_id,
    )
    *rest, refs = ormsgpack.unpackb(unpack(bytes(row["body"])))
    refs["value"] = ["msgpack", ormsgpack.packb({"approved": True})]
    body = pack(ormsgpack.packb([*rest, refs]))
    right = fingerprint(row["parent_id"].encode(), body, bytes(row["metadata"]))
    raw.rows(
        "UPDATE rp_checkpoints SET body = ?, fingerprint = ? WHERE thread_id = ? AND checkpoint_id = ?",
        body, right, thread_id, row["checkpoint_id"],
    )  # fmt: skip


def test_a_stored_value_that_is_replaced_by_a_plain_one_is_refused_when_encryption_is_on(shared_url, raw_of, caplog):
    """I2: a migration may ask for such rows; then each is counted and logged."""
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=encrypted()) as saver:
        graph = keeps(lambda: {"approved": False}, checkpointer=saver)
        graph.invoke({}, at("t"))
        forge(raw_of(saver), "t")
        for reading in (lambda: graph.get_state(at("t")), lambda: list(saver.list(at("t")))):
            with pytest.raises(UntrustedType, match=r"'value' of checkpoint .* is not encrypted"):
                reading()
        with pytest.raises(UntrustedType, match="is not encrypted"):
            graph.invoke(None, at("t"))
    migrating = AcceptPlainRows(encrypted())
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=migrating) as saver:
        assert keeps(lambda: 1, checkpointer=saver).get_state(at("t")).values["value"] == {"approved": True}
    assert migrating.plain_rows == 1
    assert [record.message for record in caplog.records if "that is not encrypted (1 so far)" in record.message]


def test_an_encrypted_thread_is_shown_by_size_without_the_key(shared_url, cli):
    """I2: the inspector has no key; it shows what it can, and says what it cannot."""
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=encrypted()) as saver:
        keeps(lambda: {"a": CANARY}, checkpointer=saver).invoke({}, at("t"))
    shown = cli("thread", "show", "t", "--json")
    (sizes,) = [one for one in json.loads(shown.stdout)["namespaces"][0]["channels"] if one["channel"] == "value"]
    assert sizes["type"].endswith("+rot")
    refused = cli("thread", "show", "t", "--channel", "value")
    assert refused.exit_code == EXIT_CODES["corrupt"]
    assert refused.stderr.startswith("UNKNOWN_FORMAT")
    data = cli("thread", "show", "t", "--channel", "value", "--bytes").stdout_bytes
    assert CANARY.encode() not in data
    assert ValueSerializer().loads_typed(("msgpack", Rot().decrypt("rot", data))) == {"a": CANARY}


SERDE = "tests.values.test_secrets:encrypted"


def test_an_encrypted_source_is_imported_and_shown_with_its_key_and_stays_encrypted(stock, sqlite_url, cli, raw_of):  # noqa: F811
    """I2: --serde names the serializer; without it the thread is an error, and nothing of it is stored."""
    with stock.opens() as saver:
        saver.serde = EncryptedSerializer(Rot(), JsonPlusSerializer())
        chain({"node": lambda _: {"log": [CANARY]}}, checkpointer=saver).invoke({"log": []}, config())
    arguments = ("import", "--from", stock.url, "--url", sqlite_url, "--json")
    refused = cli(*arguments)
    assert refused.exit_code == EXIT_CODES["corrupt"]
    assert set(json.loads(refused.stdout)["failed"]) == {"t"}
    done = cli(*arguments, "--serde", SERDE)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["threads"] == ["t"]
    shown = cli("thread", "show", "t", "--url", sqlite_url, "--channel", "log", "--serde", SERDE)
    assert json.loads(shown.stdout) == [CANARY]
    with WorkflowCheckpointAdapter.from_conn_string(sqlite_url, serde=encrypted()) as saver:
        assert CANARY.encode() not in stored(raw_of(saver), sqlite_url)
        assert saver.get_tuple(at("t")).checkpoint["channel_values"]["log"] == [CANARY]
    wrong = cli("thread", "show", "t", "--url", sqlite_url, "--serde", "tests.values.test_secrets:CANARY")
    assert wrong.exit_code == EXIT_CODES["invalid"]
    assert "must be a serializer" in wrong.stderr


# --- I4 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["L0", "L1"])
async def test_a_key_in_configurable_is_in_no_file_of_the_database_no_bundle_and_no_log(
    runtime, way, raw, shared_url, cli, caplog, level
):
    """I4: not in the rows, the files, the write-ahead log, what the inspector exports, or the logs."""
    caplog.set_level(logging.DEBUG)
    graph = keeps(lambda: 1, checkpointer=runtime.checkpointer)
    target = runtime.bind(graph, name="keeps") if level == "L1" else graph
    given = at("t", api_key=f"sk-{CANARY}", user=f"seen-{CANARY[::-1]}")
    await way(target, "invoke", {}, given)
    await way(target, "update_state", given, {"value": 2}, as_node="second")
    shown = cli("thread", "show", "t").stdout + cli("thread", "show", "t", "--json").stdout
    for info in runtime.runs.list():
        shown += cli("inspect", info.run_id).stdout + cli("inspect", info.run_id, "--json").stdout
    shown += caplog.text
    held = stored(raw, shared_url) + files(raw)
    assert CANARY[::-1].encode() in held  # names that are not of secrets are there, so the search does find things
    assert CANARY.encode() not in held
    assert CANARY not in shown


# --- I5 ---------------------------------------------------------------------------------------------------------------


class Login(BaseModel):
    user: str
    password: SecretStr


def test_a_secret_of_the_state_is_shown_only_by_the_switch_that_asks_for_it(runtime, shared_url, cli, caplog, capsys):
    """I5: the graph gets it back; inspector, exports, errors, logs and reprs do not have it."""
    caplog.set_level(logging.DEBUG)

    @operation(name="login")
    def login(secret):
        return secret

    def make():
        login(SecretStr(CANARY))
        return {"login": Login(user="u", password=SecretStr(CANARY)), SecretStr(CANARY): [SecretStr(CANARY)]}

    bound = runtime.bind(keeps(make), name="keeps")
    found = bound.invoke({"value": SecretStr(CANARY)}, at("t"))["value"]
    assert found["login"].password.get_secret_value() == CANARY
    assert bound.get_state(at("t")).values["value"][SecretStr(CANARY)][0].get_secret_value() == CANARY
    (info,) = runtime.runs.list()
    for arguments in (
        ["inspect", info.run_id], ["thread", "show", "t"], ["thread", "show", "t", "--channel", "value"],
        ["run", "show", info.run_id], ["run", "list"],
    ):  # fmt: skip
        for options in ([], ["--json"]):
            shown = cli(*arguments, *options)
            assert shown.exit_code == 0, shown.output
            assert CANARY not in shown.output
    things = (runtime, bound, info, runtime.checkpointer, runtime.checkpointer.serde, runtime.runs, found)
    assert CANARY not in "".join([*map(repr, things), caplog.text, *capsys.readouterr()])
    asked = cli("thread", "show", "t", "--channel", "value", "--show-secrets")
    assert json.loads(asked.stdout)["login"]["fields"]["password"] == CANARY


def test_no_error_about_a_value_shows_the_secrets_in_it(runtime, open_runtime, caplog):
    """I5: refused when it is stored, too large, of a class that is gone, or given to an operation as another one."""
    secret = {"password": SecretStr(CANARY), "login": Login(user="u", password=SecretStr(CANARY))}
    shown = []

    def fails(target, given=None):
        with pytest.raises(RuntimePersistError) as caught:
            target.invoke(given or {}, at(f"t{len(shown)}"))
        shown.append(str(caught.value) + repr(caught.value) + repr(caught.value.details))

    fails(keeps(lambda: {**secret, "o": object()}, checkpointer=runtime.checkpointer))
    fails(runtime.bind(keeps(lambda: [AIMessage("x", additional_kwargs={**secret, "o": object()})]), name="keeps"))
    small = open_runtime(max_value_bytes=1_000)
    fails(keeps(lambda: {**secret, "more": "x" * 2_000}, checkpointer=small.checkpointer))

    @operation(name="login")
    def login(given):
        raise ZeroDivisionError(given)

    def again(_):
        try:
            login(secret)
        except ZeroDivisionError:
            login({**secret, "o": object()})

    fails(runtime.bind(chain({"node": again}), name="again"), {"log": []})
    assert len(shown) == 4
    held = repr([info.model_dump() for info in runtime.runs.list()])
    assert CANARY not in "".join([*shown, caplog.text, held])
