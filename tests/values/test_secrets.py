"""Secrets are where they were put and nowhere else (I4, I5); a row that is not encrypted is no plain text (I2)."""

import logging

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from pydantic import BaseModel, SecretStr, field_validator

from runtime_persist import operation
from runtime_persist.adapters.workflow import (
    AcceptPlainRows,
    RequireCipher,
    ValueSerializer,
    WorkflowCheckpointAdapter,
    register_upgrade,
)
from runtime_persist.cli.main import main
from runtime_persist.errors import CheckpointCorrupt, IncompatibleClass, UntrustedType
from tests.support.graphs import asks, chain
from tests.support.stored import stored
from tests.values.graphs import at, keeps

CANARY = "sk-CANARY-7f3a"
SEEN = "seen-VISIBLE-11"


class Login(BaseModel):
    user: str
    password: SecretStr


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_secrets_in_configurable_and_metadata_are_nowhere_in_the_database(runtime, raw, shared_url, caplog, level):
    caplog.set_level(logging.DEBUG)
    names = ("api_key", "openai_token", "my_secret", "Password", "authorization", "aws_credentials")
    config = at("t", user=SEEN, **dict.fromkeys(names, CANARY))
    config["metadata"] = {"tool_api_key": CANARY}
    graph = keeps(lambda: 1, checkpointer=runtime.checkpointer)
    target = runtime.bind(graph, name="keeps") if level == "L1" else graph
    target.invoke({}, config)
    found = stored(raw, shared_url)
    assert SEEN.encode() in found
    assert CANARY.encode() not in found
    assert CANARY not in caplog.text


def test_metadata_keys_are_the_only_names_of_a_config_that_are_stored(open_runtime, raw_of, shared_url):
    runtime = open_runtime(metadata_keys=["user"])
    graph = keeps(lambda: 1, checkpointer=runtime.checkpointer)
    config = at("t", user="u", other=CANARY, run_id="r")
    graph.invoke({}, {**config, "metadata": {"note": CANARY}})
    found = runtime.checkpointer.get_tuple(at("t")).metadata
    assert found["user"] == "u"
    assert found["run_id"] == "r"
    assert found["source"] == "loop"
    assert {"other", "note"}.isdisjoint(found)
    assert CANARY.encode() not in stored(raw_of(runtime), shared_url)


def test_metadata_keys_never_let_a_secrets_name_in(open_runtime):
    runtime = open_runtime(metadata_keys=["api_key"])
    keeps(lambda: 1, checkpointer=runtime.checkpointer).invoke({}, at("t", api_key=CANARY))
    assert "api_key" not in runtime.checkpointer.get_tuple(at("t")).metadata


def test_a_secret_in_the_state_comes_back_and_is_shown_nowhere(runtime, shared_url, caplog, capsys):
    caplog.set_level(logging.DEBUG)

    @operation(name="login")
    def login(secret):
        return secret

    def node():
        login(SecretStr(CANARY))
        return Login(user="u", password=SecretStr(CANARY))

    bound = runtime.bind(keeps(node), name="keeps")
    output = bound.invoke({"value": SecretStr(CANARY)}, at("t"))
    assert output["value"].password.get_secret_value() == CANARY
    assert bound.get_state(at("t")).values["value"].password.get_secret_value() == CANARY
    (info,) = runtime.runs.list()
    shown = [repr(thing) for thing in (runtime, bound, info, runtime.checkpointer, runtime.checkpointer.serde)]
    for options in ([], ["--json"]):
        result = CliRunner().invoke(main, ["inspect", info.run_id, "--url", shared_url, *options])
        assert result.exit_code == 0, result.output
        shown.append(result.output)
    shown += [caplog.text, *capsys.readouterr()]
    assert CANARY not in "".join(shown)


def test_errors_about_a_value_do_not_show_it(runtime, monkeypatch):
    class Picky(BaseModel):
        password: str

        @field_validator("password")
        @classmethod
        def refuse(cls, value: str) -> str:
            msg = f"bad {value}"
            raise ValueError(msg)

    monkeypatch.setitem(globals(), "Picky", Picky)
    Picky.__qualname__ = "Picky"
    serde = ValueSerializer()
    kind, data = serde.dumps_typed(Picky.model_construct(password=CANARY))
    changed = data.replace(Picky.__name__.encode() + b"\xaa", Picky.__name__.encode() + b"\xaa", 1)
    token = changed.index(b"\xaa", changed.index(b"Picky")) + 1
    changed = changed[:token] + b"0000000000" + changed[token + 10 :]
    with pytest.raises(IncompatibleClass) as caught:
        serde.loads_typed((kind, changed))
    assert "password: value_error" in str(caught.value)
    assert CANARY not in str(caught.value) + repr(caught.value.details)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__

    def upgrade(old):
        raise ValueError(old)

    register_upgrade(Picky, upgrade)
    with pytest.raises(IncompatibleClass) as caught:
        serde.loads_typed((kind, changed))
    assert CANARY not in str(caught.value)


class Rot:
    """A cipher for tests: enough to see what was encrypted."""

    def encrypt(self, plaintext):
        return "rot", bytes(byte ^ 0x5A for byte in plaintext)

    def decrypt(self, ciphername, ciphertext):
        assert ciphername == "rot"
        return bytes(byte ^ 0x5A for byte in ciphertext)


def encrypted() -> EncryptedSerializer:
    return EncryptedSerializer(Rot(), ValueSerializer())


def test_an_encrypting_serializer_is_used_and_nothing_is_stored_in_the_clear(open_runtime, raw_of, shared_url):
    runtime = open_runtime(serde=encrypted())
    graph = keeps(lambda: {"a": (CANARY,)}, checkpointer=runtime.checkpointer)
    graph.invoke({}, at("t"))
    assert graph.get_state(at("t")).values["value"] == {"a": (CANARY,)}
    assert CANARY.encode() not in stored(raw_of(runtime), shared_url)


@pytest.mark.parametrize("allowlist", [False, True])
def test_a_row_that_is_not_encrypted_is_refused_when_encryption_is_on(shared_url, allowlist):
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as forger:
        keeps(lambda: {"approved": True}, checkpointer=forger).invoke({}, at("t"))
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=encrypted()) as saver:
        if allowlist:
            saver = saver.with_allowlist([Login])  # noqa: PLW2901
        for reading in (lambda: saver.get_tuple(at("t")), lambda: list(saver.list(at("t")))):
            with pytest.raises(UntrustedType, match="not encrypted"):
                reading()


def test_rows_that_are_not_encrypted_are_loaded_counted_and_logged_when_asked_for(shared_url, caplog):
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as before:
        keeps(lambda: {"approved": True}, checkpointer=before).invoke({}, at("t"))
    serde = AcceptPlainRows(encrypted())
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=serde) as saver:
        assert saver.serde is serde
        assert saver.get_tuple(at("t")).checkpoint["channel_values"]["value"] == {"approved": True}
    assert serde.plain_rows > 0
    assert "not encrypted" in caplog.text


def test_a_serializer_of_ones_own_is_used_as_given(shared_url):
    own = ValueSerializer(strict="registered")
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=own) as saver:
        assert saver.serde is own
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=encrypted()) as saver:
        assert isinstance(saver.serde, RequireCipher)


def test_what_a_serializer_of_ones_own_cannot_load_is_an_error_that_names_channel_and_checkpoint(shared_url):
    class Broken(ValueSerializer):
        def loads_typed(self, data):
            if data[0] == "bytes":
                raise ZeroDivisionError
            return super().loads_typed(data)

    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=Broken()) as saver:
        graph = keeps(lambda: b"x", checkpointer=saver)
        graph.invoke({}, at("t"))
        with pytest.raises(CheckpointCorrupt, match="'value' of checkpoint"):
            graph.get_state(at("t"))


class Refused(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def test_an_exception_with_its_own_constructor_is_kept_as_type_and_text(runtime):
    """No pickle, the text once, and the run ends (G6)."""

    @operation(name="charge")
    def charge():
        raise Refused(402, "no money")

    bound = runtime.bind(keeps(charge), name="keeps")
    with pytest.raises(Refused, match="402: no money"):
        bound.invoke({}, at("t"))
    (info,) = runtime.runs.list()
    assert info.status == "failed"
    state = bound.get_state(at("t"))
    assert state.tasks[0].error == "Refused('402: no money')"


def test_a_question_of_five_megabytes_is_asked_and_answered(runtime):
    bound = runtime.bind(chain({"ask": asks("x" * 5_000_000)}), name="asks")
    output = bound.invoke({"log": []}, at("t"))
    assert len(output["__interrupt__"][0].value) == 5_000_000
