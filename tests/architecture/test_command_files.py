"""Commands and tables: one a file, each with its guard and its tests."""

import dataclasses
import importlib
from pathlib import Path

import pytest
from sqlalchemy import Table

from runtime_persist import commands, schema
from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import ColdCommand, Command, HotCommand

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in Path(commands.__file__).parent.glob("*.py") if path.stem != "__init__")
TABLES = sorted(
    path.stem
    for path in Path(schema.__file__).parent.glob("*.py")
    if path.stem not in {"__init__", "metadata", "migrate"}
)

# Design: architecture §3 and domain §10. Three are finer than the text there, each for a reason of its own:
# yield_attempt is refused while stopping, because a stopping run that waits for a person would never end; a run is
# finalized while recovering too, because a crash loop and a stopping run are ended by whoever took them over;
# request_start is new work, so it is refused while stopping.
GUARDS = {
    "begin_operation": "lease(active, open)",
    "begin_with_ticket": "lease(active, open)",
    "begin_in_invocation": "lease(active, open)",
    "reserve_ticket": "lease(active, open)",
    "start_attempt": "lease(active, open)",
    "request_start": "lease(active, open)",
    "open_domain": "lease(active, open)",
    "yield_attempt": "lease(active, open)",
    "commit_workflow_checkpoint": "lease(active)",
    "commit_workflow_task_writes": "lease(active)",
    "complete_operation": "lease(active)",
    "end_attempt": "lease(active)",
    "note_attempt": "lease(active)",
    "settle_ticket": "lease(active)",
    "save_attempt_raw": "lease(active)",
    "report_attempt_event": "lease(active)",
    "fail_attempt": "lease(active)",
    "renew_lease": "lease(recovering or active)",
    "activate_lease": "lease(recovering or active)",
    "release_claim": "lease(recovering or active)",
    "record_revocation": "lease(recovering or active)",
    "block_takeover": "lease(recovering or active)",
    "finalize_run": "lease(recovering or active)",
    "claim_run": "claim",
    "claim_next": "claim",
    "start_owned_run": "claim",
    "continue_owned_run": "claim",
    "create_space": "control",
    "import_bundle": "control",
    "ack_events": "control",
    "renumber_events": "control",
    "register_graph": "control",
    "report_instance": "control",
    "start_run": "control",
    "fork_run": "control",
    "retry_run": "control",
    "request_stop": "control",
    "report_callback": "control",
    "revoke_callback": "control",
    "mark_lost": "control",
    "confirm_revocation": "control",
    "move_to_front": "control",
    "answer_question": "control",
    "raise_budget": "control",
    "resolve_unknown": "control",
    "control_finalize_operation": "control",
    "expire_delete_marks": "control",
    "collect_content": "control",
    "store_content": "control",
    "put_thread_checkpoint": "thread",
    "put_thread_writes": "thread",
    "replace_thread_checkpoint": "thread",
    "delete_thread": "thread",
    "delete_runs_checkpoints": "thread",
    "copy_thread": "thread",
    "import_thread": "thread",
    "prune_thread": "thread",
}
HOT = {
    "ack_events",
    "begin_operation",
    "begin_with_ticket",
    "commit_workflow_checkpoint",
    "commit_workflow_task_writes",
    "complete_operation",
    "end_attempt",
    "note_attempt",
    "put_thread_checkpoint",
    "put_thread_writes",
    "renew_lease",
    "replace_thread_checkpoint",
    "report_instance",
    "save_attempt_raw",
    "start_attempt",
    "store_content",
}


def module(name):
    return importlib.import_module(f"runtime_persist.commands.{name}")


def test_command_times_guard_is_the_design():
    assert {spec.name: str(spec.guard) for spec in COMMANDS.values()} == GUARDS


def test_the_hot_commands_are_these():
    assert {spec.name for spec in COMMANDS.values() if isinstance(spec, HotCommand)} == HOT


@pytest.mark.parametrize("name", NAMES)
def test_a_file_holds_one_command_of_its_name_and_its_dto(name):
    found = module(name)
    specs = [value for value in vars(found).values() if isinstance(value, HotCommand | ColdCommand)]
    dtos = [
        value
        for value in vars(found).values()
        if isinstance(value, type) and issubclass(value, Command) and value.__module__ == found.__name__
    ]
    assert specs == [found.SPEC]
    assert dtos == [found.SPEC.dto]
    assert found.SPEC.name == name
    assert COMMANDS[found.SPEC.dto] is found.SPEC
    assert dataclasses.fields(found.SPEC.dto)
    assert found.SPEC.dto.__dataclass_params__.frozen


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_contract_tests(name):
    assert (ROOT / "tests" / "contract" / f"test_{name}.py").is_file()


def test_every_contract_test_file_of_a_command_has_its_command():
    assert set(NAMES) == set(GUARDS)
    assert len(COMMANDS) == len(NAMES)


@pytest.mark.parametrize("name", TABLES)
def test_a_schema_file_holds_one_table_of_its_name(name):
    found = importlib.import_module(f"runtime_persist.schema.{name}")
    (table,) = (value for value in vars(found).values() if isinstance(value, Table))
    assert table.name == f"rp_{name}"
    assert getattr(schema, name) is table
    assert next(iter(table.primary_key)).name == "space"


def test_every_table_has_a_file():
    assert sorted(table.name for table in schema.metadata.sorted_tables) == [f"rp_{name}" for name in TABLES]


@pytest.mark.parametrize("spec", COMMANDS.values(), ids=lambda spec: spec.name)
def test_fragment_and_statement_names_are_unique(spec):
    parts = [*spec.expectations, spec.receipt, *spec.effects] if isinstance(spec, HotCommand) else spec.statements
    names = [part.name for part in parts]
    assert len(names) == len(set(names))
