"""A lease is renewed also while every other connection waits for a locked row."""

from runtime_persist.drivers.postgresql_batches import IN_FLIGHT_MAX
from runtime_persist.drivers.postgresql_pool import CONNECTIONS_MAX
from tests.fixtures.raw import connect
from tests.fixtures.world import World

DEADLINE_SECONDS = 30
THAT_MAY_WAIT = CONNECTIONS_MAX - IN_FLIGHT_MAX  # batches wait for nobody


def test_a_lease_is_renewed_while_all_connections_wait_for_locks(postgres_dsn, open_engine):
    with World(open_engine(postgres_dsn)) as world:
        held = world.owned()
        threads = [f"t{n}" for n in range(CONNECTIONS_MAX)]
        for thread_id in threads:
            world.commit(world.put_checkpoint(thread_id, checkpoint_id="c1"))
        holder = connect(world.engine)
        holder.rows("BEGIN")
        for thread_id in threads:
            holder.rows("SELECT 1 FROM rp_threads WHERE thread_id = ? FOR UPDATE", thread_id)
        commit = world.engine.coordinator.commit
        blocked = [commit(world.put_checkpoint(thread_id, checkpoint_id="c2")) for thread_id in threads]
        world.raw.wait_for_lock_wait(THAT_MAY_WAIT)
        renewal = commit(world.renew(held)).result(DEADLINE_SECONDS)
        assert renewal.result["control"] == "open"
        assert not any(future.done() for future in blocked)
        holder.rows("COMMIT")
        assert all(not future.result(DEADLINE_SECONDS).replayed for future in blocked)
        holder.close()
