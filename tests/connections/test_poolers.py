"""Behind a transaction pooler (user pains F1 and F6): other sessions each time, with what others left in them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import pytest
from sqlalchemy import BigInteger

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.schema import metadata
from tests.fixtures.raw import PostgresRaw
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import chain, config, says

SESSION_STATE = ("SET ", "LISTEN", "NOTIFY", "DISCARD", "DEALLOCATE", "CREATE TEMP", "DECLARE", "PREPARE")
STEPS = 12


def everything(world, thread_id, rounds=STEPS):
    """The commands of a run, hot and cold, one after the other."""
    held = world.owned(thread_id)
    for number in range(rounds):
        world.commit(world.renew(held))
        operation = world.begun(held, ordinal=f"#{number}")
        world.commit(world.complete(held, operation, number))
        world.commit(world.commit_checkpoint(held, checkpoint_id=f"c{number}"))
        world.commit(world.commit_writes(held, "a", task_id=f"task {number}"))
    return held


def test_f1_everything_works_with_default_settings(postgres_url, pooled, worlds):
    world = worlds(pooled(postgres_url), beside=postgres_url)
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda name: everything(world, name), ["t1", "t2", "t3", "t4"]))
    assert len({held.run_id for held in runs}) == 4
    assert world.count("rp_checkpoints") == world.count("rp_writes") == world.count("rp_operations") == 4 * STEPS
    assert not world.engine._driver._manners.names, "a pooler that follows no names has shown itself"


def test_f1_clients_of_the_test_pooler_really_get_other_sessions(postgres_url, pooler, worlds):
    """Otherwise the tests here would test nothing."""
    everything(worlds(pooler.dsn(postgres_url), beside=postgres_url), "t")
    assert pooler.changes > STEPS
    assert pooler.refused == ["plan_cache_mode"], "a hint was tried once, by whichever pool came first"
    refused = asyncpg.connect(pooler.dsn(postgres_url), server_settings={"search_path": "other"})
    with pytest.raises(asyncpg.PostgresError, match="search_path"):
        asyncio.run(refused)
    assert pooler.refused == ["plan_cache_mode", "search_path"]


def test_f1_a_client_of_the_test_pooler_never_gets_the_session_it_had_last(postgres_url, pooler):
    """Also when somebody is in the other one: it waits for that, instead of finding its own names again."""
    dsn = pooler.dsn(postgres_url)

    async def exchanges():
        one = await asyncpg.connect(dsn)
        await one.execute("SELECT 1")
        for _ in range(STEPS):
            other = await asyncpg.connect(dsn)
            await other.execute("BEGIN")
            seen = asyncio.create_task(one.execute("SELECT 1"))
            await asyncio.sleep(0)  # it is sent before the other one ends its transaction
            await other.execute("COMMIT")
            await seen
            await other.close()
        await one.close()

    asyncio.run(exchanges())
    assert pooler.changes == STEPS


def test_f1_the_savers_methods_work_sync_and_async(postgres_url, pooler, way, opened):
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(pooler.dsn(postgres_url)))

    async def body():
        place = at()
        for number in range(STEPS):
            made = new_checkpoint({"n": number}, {"n": str(number + 1)})
            place = await way(saver, "put", place, made, {"step": number}, {"n": str(number + 1)})
            await way(saver, "put_writes", place, [("n", number)], "task")
            found = await way(saver, "get_tuple", at())
            assert found.checkpoint["channel_values"] == {"n": number}
        assert len(await way.all(saver, "list", at())) == STEPS
        await way(saver, "delete_thread", "t")
        assert await way(saver, "get_tuple", at()) is None

    way.run(body())


def test_f1_owned_runs_work(postgres_url, pooler, opened):
    runtime = opened(Runtime.open(pooler.dsn(postgres_url)))
    graph = runtime.bind(chain({name: says(name) for name in "abc"}), name="g")
    for number in range(3):
        assert graph.invoke({"log": []}, config(f"t{number}"))["log"] == ["a", "b", "c"]
    assert {run.status for run in runtime.runs.list()} == {"succeeded"}


def test_an_empty_database_is_set_up_through_the_pooler_by_several_at_once(postgres_dsn, pooled, open_engine):
    with ThreadPoolExecutor(4) as threads:
        engines = list(threads.map(lambda _: open_engine(pooled(postgres_dsn)), range(4)))
    assert len({engine.coordinator.keys.secret for engine in engines}) == 1
    for engine in engines:
        engine.close()


def test_two_programs_that_share_sessions_never_run_each_others_statements(postgres_url, pooler, worlds):
    """Both prepare in the same sessions; what one does and what the other does stays what it was."""
    pair = [worlds(pooler.dsn(postgres_url), beside=postgres_url) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(everything, pair, ["t1", "t2"]))
    for thread in ("t1", "t2"):
        rows = pair[0].raw.rows("SELECT checkpoint_id FROM rp_checkpoints WHERE thread_id = ?", thread)
        assert len(rows) == STEPS


def test_a_hot_command_is_one_round_trip_behind_a_pooler_and_two_at_its_first_use(postgres_url, counted_pooler, worlds):
    world = worlds(counted_pooler.dsn(postgres_url), beside=postgres_url)
    everything(world, "t", 3)
    assert not world.engine._driver._manners.names
    seen = []
    for number in range(STEPS):
        command = world.put_checkpoint("free", expects=f"c{number - 1}" if number else None, checkpoint_id=f"c{number}")
        counted_pooler.reset()
        world.commit(command)
        seen.append(counted_pooler.round_trips)
        assert {statement.name for statement in counted_pooler.statements} == {""}
    assert seen == [2] + [1] * (STEPS - 1)
    assert counted_pooler.messages == {"P": 1, "B": 1, "E": 1, "S": 1}


def test_the_command_that_meets_the_pooler_first_is_done_all_the_same(postgres_url, counted_pooler, worlds):
    """It may find its name unknown (26000) or taken (42P05): three round trips at most, once in a program's life."""
    world = worlds(counted_pooler.dsn(postgres_url), beside=postgres_url)
    manners = world.engine._driver._manners
    held = world.owned()
    world.engine.notifications.flush()
    seen = []
    while manners.names:
        counted_pooler.reset()
        world.commit(world.commit_writes(held, "a"))
        seen.append(counted_pooler.round_trips)
        assert len(seen) < STEPS
    assert max(seen) <= 4  # prepare, unknown; learn the types, send whole


def test_no_session_state_is_used(postgres_dsn, counted_pooler, worlds):
    world = worlds(counted_pooler.dsn(postgres_dsn), beside=postgres_dsn)  # the migration too
    everything(world, "t", 2)
    sent = {statement.sql.upper() for statement in counted_pooler.statements}
    assert len(sent) > 20
    assert [sql for sql in sent if sql.lstrip().startswith(SESSION_STATE) or "PG_ADVISORY_LOCK" in sql] == []


def test_what_others_left_in_a_session_does_no_harm(postgres_url, pooler, worlds):
    """Another program changed where names are looked up: with ``schema=`` every table is named in full."""
    other = PostgresRaw(pooler.dsn(postgres_url))
    for _ in range(4):
        other._runner.run(other.connection.execute("SET search_path TO pg_catalog"))
    other.close()
    everything(worlds(pooler.dsn(postgres_url), beside=postgres_url, schema="public"), "t", 2)


def test_a_startup_parameter_that_a_pooler_refuses_is_not_sent_again(postgres_url, pooler):
    with Runtime.open(pooler.dsn(postgres_url) + "&application_name=agents&connect_timeout=5") as runtime:
        assert runtime.runs.list() == []
    assert pooler.refused == ["plan_cache_mode"]


# --- one schema a tenant --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["tenant_b", 'Tenant "B" $1'])
def test_f6_tenants_in_schemas_of_one_database_do_not_meet(postgres_dsn, pooler, opened, second):
    names = ("tenant_a", second)
    savers = [opened(WorkflowCheckpointAdapter.from_conn_string(pooler.dsn(postgres_dsn), schema=n)) for n in names]
    places = [at(), at()]
    for number in range(6):
        for tenant, saver in enumerate(savers):
            made = new_checkpoint({"who": names[tenant], "n": number}, {"n": str(number + 1)})
            places[tenant] = saver.put(places[tenant], made, {}, {"who": "1", "n": str(number + 1)})
    for tenant, saver in enumerate(savers):
        assert saver.get_tuple(at()).checkpoint["channel_values"] == {"who": names[tenant], "n": 5}
        assert len(list(saver.list(at()))) == 6
    raw = PostgresRaw(postgres_dsn)
    made = raw.rows("SELECT schemaname, tablename FROM pg_tables WHERE tablename LIKE 'rp\\_%'")
    raw.close()
    assert {row["schemaname"] for row in made} == set(names)
    assert len(made) == 2 * (len(metadata.tables) + 1)


def test_a_migration_under_prepared_statements_goes_unnoticed(postgres_url, proxy, worlds):
    """0A000, "cached plan must not change result type": parsed again, in transactions too."""
    world = worlds(proxy.dsn(postgres_url), beside=postgres_url)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: everything(world, name, 2), ["t1", "t2", "t3", "t4"]))
    everything(world, "t5", 2)  # alone, so that it is not only batches that know the statements
    for table in metadata.sorted_tables:
        numbers = {name for name, column in table.columns.items() if isinstance(column.type, BigInteger)}
        for column in {"epoch", "attempt_no", "version", "try_no"} & numbers:
            world.raw.rows(f"ALTER TABLE {table.name} ALTER COLUMN {column} TYPE integer")
    proxy.reset()
    everything(world, "u5", 2)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda name: everything(world, name, 2), ["u1", "u2", "u3", "u4"]))
    assert any(statement.name == "" and statement.sql.startswith("WITH") for statement in proxy.statements), "0A000"
    assert world.engine._driver._manners.names, "without a pooler names stay"
    world.commit(world.renew(held := world.owned("v")))
    proxy.reset()
    world.commit(world.renew(held))
    assert proxy.messages == {"B": 1, "E": 1, "S": 1}
