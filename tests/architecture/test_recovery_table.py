"""There is one recovery table: workers, journal and claims ask it, and nobody else decides.

That another row is another deed: tests/recovery/test_plans.py.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import runtime_persist
from runtime_persist.journal import record
from runtime_persist.recovery import Act
from runtime_persist.recovery.rules import Subject
from runtime_persist.recovery.table import RULES

PACKAGE = Path(runtime_persist.__file__).parent
ASKS = {
    "worker/execute.py": {"steps"},
    "worker/reconciling.py": {"asked_attempt"},
    "journal/record.py": {"rule_of"},
    "journal/tries.py": {"unknown"},
    "commands/parts/claiming.py": {"is_takeover"},
    "commands/parts/taking.py": {"counted", "is_crash_loop"},
    "commands/continue_owned_run.py": {"is_takeover"},
    "commands/mark_lost.py": {"is_takeover"},
    "runtime/recovering.py": {"plan_of", "steps"},
    "inspector/recovery.py": {"plan_of"},
}
"""Who asks the table what."""
POLICIES = {"ask", "fail", "reconcile"}
ANSWERS_IN = {"recovery", "commands", "inspector"}
"""Where it may be asked whether an answer is stored: the table, commands that refuse to overwrite one, and what only
tells people."""


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def modules(*folders):
    for folder in folders:
        for path in (PACKAGE / folder).rglob("*.py"):
            yield path.relative_to(PACKAGE).as_posix(), tree_of(path)


def test_whoever_decides_asks_the_table():
    for name, functions in ASKS.items():
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            for node in ast.walk(ast.parse((PACKAGE / name).read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
        }
        assert functions <= called, name


def test_nobody_else_compares_what_is_declared_for_an_unknown_call():
    """``timed_out`` may: it is about a call of this very process, whose caller stopped waiting."""
    found = {}
    for name, tree in modules("journal", "worker", "engine", "runtime", "adapters/middleware"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                words = {side.value for side in sides if isinstance(side, ast.Constant)}
                names = {getattr(side, "id", getattr(side, "attr", "")) for side in sides}
                if "on_unknown" in names and words & (POLICIES | {"retry"}):
                    found.setdefault(name, set()).update(words)
    assert found == {"journal/tries.py": {"retry"}}


def test_nobody_else_asks_whether_an_answer_is_stored_or_how_many_takeovers_are_too_many():
    found = set()
    for name, tree in modules("."):
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if used & {"ANSWERED", "max_takeovers"}:
            found.add(name)
    at_home = {"model/states.py", "model/retry.py"}
    assert {name for name in found if name.split("/")[0] not in ANSWERS_IN} == at_home


def test_the_journal_has_one_way_to_do_each_action_on_a_call():
    acts = {rule.act for rule in RULES.values() if rule.subject is Subject.CALL}
    assert set(record._DONE) == acts - {Act.NOTHING}


@pytest.mark.parametrize("act", [Act.REVOKE, Act.ASK_RUNTIME, Act.END, Act.GIVE_UP])
def test_a_worker_does_each_step_that_the_table_puts_before_an_attempt(act):
    source = ast.parse((PACKAGE / "worker" / "execute.py").read_text())
    named = {node.attr for node in ast.walk(source) if isinstance(node, ast.Attribute)}
    assert act.name in named
