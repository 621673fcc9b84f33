"""Which statements are sent together, and what they are written as."""

import re

import pytest

from runtime_persist.commands.claim_next import TAKE_TURN
from runtime_persist.commands.parts import receipts, run_rows
from runtime_persist.dialects.postgresql import PostgresDialect
from runtime_persist.plan import TOGETHER_MAX, Call, together

PARAMETERS_MAX = 32_767  # of one statement

RECEIPT = Call(receipts.WRITE_RECEIPT, {"command_id": "c"})


def attempt(query, attempt_id):
    return Call(query, {"attempt_id": attempt_id})


SAVE, INSERT = run_rows.SAVE_ATTEMPT, run_rows.INSERT_ATTEMPT


def test_statements_of_different_rows_go_together():
    calls = [RECEIPT, Call(run_rows.SAVE_RUN, {"run_id": "r"}), attempt(SAVE, "a"), attempt(INSERT, "b")]
    assert together(calls) == 4


def test_a_second_statement_about_a_row_is_sent_behind_the_first():
    calls = [RECEIPT, attempt(INSERT, "a"), Call(run_rows.SAVE_RUN, {"run_id": "a"}), attempt(SAVE, "a")]
    assert together(calls) == 3


def test_a_statement_about_more_than_a_row_is_sent_by_itself_and_what_follows_behind_it():
    calls = [RECEIPT, Call(run_rows.MARK_TRIES_UNKNOWN, {}), attempt(run_rows.SAVE_ATTEMPT, "a")]
    assert together(calls) == 1


def test_a_command_that_ends_a_thousand_runs_does_not_run_out_of_parameters():
    calls = [RECEIPT, *(Call(run_rows.SAVE_RUN, {"run_id": str(number)}) for number in range(1000))]
    first = together(calls)
    assert first == TOGETHER_MAX
    assert len(PostgresDialect().in_one(tuple(call.query for call in calls[:first])).order) < PARAMETERS_MAX
    assert sum(len(PostgresDialect().query(call.query).order) for call in calls) > PARAMETERS_MAX


@pytest.mark.parametrize("schema", [None, 'odd "$1" name', "it's $2"])
def test_each_statement_keeps_its_own_parameters(schema):
    dialect = PostgresDialect(schema)
    queries = (receipts.WRITE_RECEIPT, run_rows.SAVE_RUN, run_rows.SAVE_ATTEMPT, run_rows.SAVE_THREAD, TAKE_TURN)
    alone = [dialect.query(query) for query in queries]
    whole = dialect.in_one(queries)
    assert whole is dialect.in_one(queries)
    assert whole.order == tuple(f"{number}:{name}" for number, one in enumerate(alone) for name in one.order)
    parts = re.split(r"(?:WITH|,) s\d AS \(", whole.sql)
    begin = 0
    for one, part in zip(alone, parts[1:], strict=True):
        own = part
        for number in range(1, len(one.order) + 1):
            own = own.replace(f"${begin + number}::", f"${number}::")
        assert own.startswith(f"{one.sql})")
        begin += len(one.order)
