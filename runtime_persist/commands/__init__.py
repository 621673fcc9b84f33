"""The commands: one file each, registered here. Nothing else is ever written.

To add one: a file with its DTO and its SPEC, and its name in the list below; a test names what else is missing.
"""

from __future__ import annotations

from typing import Any

from runtime_persist.commands import (
    activate_lease,
    answer_question,
    begin_operation,
    claim_run,
    collect_content,
    commit_workflow_checkpoint,
    commit_workflow_task_writes,
    complete_operation,
    continue_owned_run,
    copy_thread,
    create_space,
    delete_runs_checkpoints,
    delete_thread,
    expire_delete_marks,
    fail_attempt,
    finalize_run,
    import_thread,
    mark_lost,
    move_to_front,
    prune_thread,
    put_thread_checkpoint,
    put_thread_writes,
    register_graph,
    release_claim,
    renew_lease,
    replace_thread_checkpoint,
    report_attempt_event,
    request_start,
    request_stop,
    resolve_unknown,
    start_attempt,
    start_owned_run,
    start_run,
    store_content,
    yield_attempt,
)
from runtime_persist.commands.parts.spec import ColdCommand, Command, HotCommand

_MODULES = (
    activate_lease,
    answer_question,
    begin_operation,
    claim_run,
    collect_content,
    commit_workflow_checkpoint,
    commit_workflow_task_writes,
    complete_operation,
    continue_owned_run,
    copy_thread,
    create_space,
    delete_runs_checkpoints,
    delete_thread,
    expire_delete_marks,
    fail_attempt,
    finalize_run,
    import_thread,
    mark_lost,
    move_to_front,
    prune_thread,
    put_thread_checkpoint,
    put_thread_writes,
    register_graph,
    release_claim,
    renew_lease,
    replace_thread_checkpoint,
    report_attempt_event,
    request_start,
    request_stop,
    resolve_unknown,
    start_attempt,
    start_owned_run,
    start_run,
    store_content,
    yield_attempt,
)

Spec = HotCommand[Any] | ColdCommand[Any]

COMMANDS: dict[type[Command], Spec] = {module.SPEC.dto: module.SPEC for module in _MODULES}
"""DTO class -> command."""

__all__ = ["COMMANDS", "Spec"]
