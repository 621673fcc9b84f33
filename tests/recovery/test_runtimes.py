"""Applying a plan with a runtime that executes the attempt elsewhere; that does not depend on the database."""

import pytest

from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.support import command_line
from tests.support.leases import run_out


@pytest.fixture
def shared_url(sqlite_url):
    return sqlite_url


def test_a_fresh_process_executes_it_in_the_runtime_that_it_is_told(runtime, taken, shared_url, raw, fork):
    run_id = taken().lease.run_id
    run_out(raw)
    apply = ("recover", "apply", run_id, "--url", shared_url, "--plan", runtime.runs.recovery_plan(run_id).hash)
    refused = command_line.says(fork, *apply, "--runtime", "subprocess")
    assert (refused.exit_code, refused.output) == (EXIT_CODES["invalid"], "")
    assert refused.errors.splitlines()[-1].startswith("INVALID_INPUT: --runtime")
    done = command_line.says(fork, *apply, "--runtime", "subprocess", "--app", "tests.recovery.shop:registry")
    assert (done.exit_code, done.output) == (0, f"succeeded  run {run_id}, epoch 2: claimed, executed\n")
    assert [row["runtime"] for row in raw.rows("SELECT runtime FROM rp_attempts ORDER BY attempt_no")][
        1
    ] == "subprocess"
    assert [domain.state for domain in runtime.runs.domains(run_id)] == ["revoked"]
    assert check_invariants(read_rows(runtime.engine)) == []
