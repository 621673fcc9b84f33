"""Whatever a saver can have wrong, LangGraph's own kits notice little of it: for each fault, a test of ours does.

A broken saver is ours with one fault. The check that is named with it fails on it; the same check passes on the
unbroken saver. Checks are tests of tests/saver, which run there on every database; those of the conformance kit's
form; and those that are only here, which run here on every database.
"""

import inspect
import itertools

import pytest

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.testing import delta_history
from tests.broken_savers import (
    checks_together,
    checks_upkeep,
    checks_values,
    faults_history,
    faults_list,
    faults_put,
    faults_read,
    faults_together,
    faults_upkeep,
    faults_writes,
)
from tests.broken_savers.broken import FAULTS, Broken
from tests.support.way import WAYS

OWN = (*checks_values.CHECKS, *checks_upkeep.CHECKS, *checks_together.CHECKS)
PARTS = (faults_put, faults_writes, faults_read, faults_list, faults_together, faults_upkeep, faults_history)
WRAPPED = (faults_put.a_key_in_the_config_is_not_stored, faults_read.damage_is_told)
"""Tests of tests/saver that need a word more here."""
SPACES = itertools.count()


def unwrapped(check):
    return getattr(check, "func", getattr(check, "__wrapped__", check))


def name_of(check):
    return unwrapped(check).__name__


@pytest.fixture
def tried(sqlite_url, raw_of, monkeypatch):
    """Runs a check on a saver of its own, in a file of its own."""

    def run(kind, check, way):
        with kind.from_conn_string(sqlite_url) as saver:
            given = {"saver": saver, "way": way}
            wanted = inspect.signature(check, follow_wrapped=False).parameters
            if "raw" in wanted:
                given["raw"] = raw_of(saver)
            if "monkeypatch" in wanted:
                given["monkeypatch"] = monkeypatch
            way.run(check(**given))

    return run


CAUGHT = [
    pytest.param(fault, check, way, id=f"{fault.name}-{name_of(check)}-{way.name}")
    for fault in FAULTS
    for check in fault.checks
    for way in fault.ways
]


@pytest.mark.parametrize(("fault", "check", "way"), CAUGHT)
def test_a_broken_saver_is_caught_by_the_check_that_names_it(tried, fault, check, way):
    with pytest.raises(BaseException) as caught:
        tried(fault.saver, check, way)
    assert isinstance(caught.value, fault.shows), caught.value
    assert "Timeout" not in str(caught.value)


USED = {(name_of(check), way): check for fault in FAULTS for check in fault.checks for way in fault.ways}


@pytest.mark.parametrize(("check", "way"), [pytest.param(c, w, id=f"{n}-{w.name}") for (n, w), c in USED.items()])
def test_the_unbroken_saver_passes_the_same_check(tried, check, way):
    tried(Broken, check, way)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def one_database(request, tmp_path_factory):
    """One database for all checks, each in a space of its own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('checks') / 'checks.db'}"
    else:
        server = request.getfixturevalue("postgres_server")
        dsn = server.create_database(request.getfixturevalue("postgres_template"))
        yield dsn
        server.drop_database(dsn)


@pytest.mark.parametrize("check", OWN, ids=name_of)
def test_our_saver_passes_every_check_on_both_databases(one_database, check):
    for way in checks_together.WAYS.get(check, WAYS):
        with WorkflowCheckpointAdapter.from_conn_string(one_database, space=f"space {next(SPACES)}") as saver:
            way.run(check(saver, way))


def test_every_check_that_is_only_here_catches_somebody():
    used = {unwrapped(check) for fault in FAULTS for check in fault.checks}
    assert [check.__name__ for check in (*OWN, *delta_history.CHECKS) if check not in used] == []


def test_every_other_check_is_a_test_that_runs_on_every_database():
    for fault in FAULTS:
        for check in map(unwrapped, fault.checks):
            if check not in {*OWN, *delta_history.CHECKS, *WRAPPED}:
                assert check.__module__.startswith("tests.saver.test_"), fault.name
                assert check.__name__.startswith("test_"), fault.name
