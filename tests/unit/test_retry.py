"""Which errors are tried again, how often and how long; what a lost reply means."""

import inspect

import pytest
from asyncpg import InternalClientError

from runtime_persist import errors
from runtime_persist.coordinator import retry
from runtime_persist.dialects import PostgresDialect
from runtime_persist.errors import ConnectionLost, OutcomeUnknown, RuntimePersistError, StoreBusy
from runtime_persist.model import limits

ALL = [found for found in vars(errors).values() if inspect.isclass(found) and issubclass(found, RuntimePersistError)]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_only_busy_and_lost_connections_are_tried_again(kind):
    assert (retry.delay(kind(), 0) is not None) == (kind in {StoreBusy, ConnectionLost})


def test_tries_are_bounded():
    pauses = [retry.delay(StoreBusy(), tries) for tries in range(limits.RETRY_ATTEMPTS_MAX + 1)]
    assert [pause is None for pause in pauses] == [False] * (limits.RETRY_ATTEMPTS_MAX - 1) + [True, True]


@pytest.mark.parametrize("tries", range(limits.RETRY_ATTEMPTS_MAX - 1))
def test_pauses_grow_with_jitter_and_have_a_bound(tries):
    pauses = [retry.delay(StoreBusy(), tries) for _ in range(200)]
    full = min(0.02 * 2**tries, 1.0)
    assert all(full / 2 <= pause <= full for pause in pauses)
    assert len(set(pauses)) > 1


def test_a_lost_reply_is_unknown_and_never_guessed():
    lost = ConnectionLost()
    error = retry.surrender(lost, "c1", maybe_committed=True)
    assert type(error) is OutcomeUnknown
    assert error.details == {"command_id": "c1"}
    assert retry.surrender(lost, "c1", maybe_committed=False) is lost


def test_a_database_that_stays_busy_wrote_nothing():
    busy = StoreBusy()
    assert retry.surrender(busy, "c1", maybe_committed=True) is busy


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_of_its_own_a_kind_and_a_message(kind):
    import pickle

    assert [other.code for other in ALL].count(kind.code) == 1
    assert kind.code == kind.code.upper()
    assert kind.kind in {"retry", "conflict", "fenced", "invalid", "corrupt", "unknown", "failed", "bug"}
    error = kind(run_id="r")
    assert error.message
    assert str(error).startswith(f"[{kind.code}] ")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert (type(again), again.message, again.details) == (kind, error.message, {"run_id": "r"})
    assert isinstance(error, RuntimeError)


def test_a_statement_that_met_a_connections_end_is_tried_again():
    error = InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    assert PostgresDialect().classify(error).kind == "retry"
