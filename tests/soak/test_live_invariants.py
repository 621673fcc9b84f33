"""A look at what must hold at every moment sees each kind of damage, and nothing where there is none."""

from __future__ import annotations

import pytest

from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.testing.live_invariants import RULES, look


def lives(world):
    """Runs in many states; the one that is damaged is claimed by an instance, started, and has a domain."""
    world.queued("queued")
    world.set_run(world.owned("left").run_id, expires_us=1)
    world.claimed("claimed")
    held = world.activated(world.claimed("t"))
    world.with_domain(held)
    world.commit(RequestStart(attempt_id=held.attempt_id, **world.of_lease(held)))
    world.commit(ReportAttemptEvent(attempt_id=held.attempt_id, **world.of_lease(held)))
    return held


DAMAGE = {
    "live_unleased": "UPDATE rp_runs SET phase = 'released' WHERE run_id = ?",
    "live_event_gaps": "DELETE FROM rp_events WHERE seq = 2 AND run_id = ?",
    "live_attempts": "",  # a second open one beside the first
    "live_scopes": "UPDATE rp_runs SET scope = 'left' WHERE run_id = ?",
    "live_limits": "UPDATE rp_graphs SET max_concurrency = 2 WHERE graph = 'g' AND '' <> ?",
    "live_slots": "UPDATE rp_instances SET slots = 1 WHERE '' <> ?",
    "live_domains": "UPDATE rp_domains SET epoch = 0 WHERE run_id = ?",
    "live_budgets": "UPDATE rp_runs SET loops_reserved = 1 WHERE run_id = ?",
}


def test_every_rule_has_its_damage():
    assert set(DAMAGE) == {query.name for query in RULES}


@pytest.mark.parametrize("rule", DAMAGE)
def test_damage_is_seen(world, rule):
    held = lives(world)
    world.raw.rows(
        "INSERT INTO rp_graphs (space, graph, registered_us, max_concurrency) VALUES (?, 'g', 1, 3)", world.space
    )
    assert look(world.engine) == []
    if rule == "live_attempts":
        row = world.attempt(held.attempt_id)
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        twin = row | {"attempt_id": "twin", "attempt_no": 2}
        world.raw.rows(f"INSERT INTO rp_attempts ({names}) VALUES ({marks})", *twin.values())
    else:
        world.raw.rows(DAMAGE[rule], held.run_id)
    meaning = {query.name: said for query, said in RULES.items()}[rule]
    found = look(world.engine)
    assert len(found) == 1, found
    assert found[0].startswith(meaning)
