"""What a person may do to a run from its page: commands that exist anyway, through ``runtime.runs``."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.errors import InvalidInput
from runtime_persist.model.budgets import Budget
from runtime_persist.model.questions import QuestionKind
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.recovery.rules import Act

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from runtime_persist.model.records import RunRecord
    from runtime_persist.recovery import RecoveryPlan
    from runtime_persist.runtime import Runs

    Form = Mapping[str, str]
    Action = Callable[[Runs, str, Form], Awaitable[str]]

DONE: Final = {
    "cancel": "It was asked to stop.",
    "now": "It goes first now.",
    "retry": "This run was queued: it goes on where the other one stopped.",
    "resume": "The answer is stored; a worker resumes the run.",
    "resolve": "It is stored what became of the call.",
    "raise-budget": "The budget is raised.",
    "recover": "The plan was carried out; workers go on with the run, unless that ended it.",
}
"""What a page says after each action."""


_RECOVERED: Final = frozenset({Act.TAKE_OVER, Act.GIVE_UP, Act.END})
"""What recovery does at once, without a graph."""


def offered(run: RunRecord, plan: RecoveryPlan) -> frozenset[str]:
    """Return the actions that make sense for a run as it is, besides answers to what it asks."""
    status = RunStatus(run.status)
    if status in FINAL_RUN:
        return frozenset({"retry"}) if status is not RunStatus.SUCCEEDED else frozenset()
    found = {"cancel"}
    if status in {RunStatus.QUEUED, RunStatus.RETRY_WAIT}:
        found.add("now")
    if run.budget:
        found.add("raise-budget")
    if Act(plan.run.act) in _RECOVERED:
        found.add("recover")
    return frozenset(found)


async def act(runs: Runs, name: str, run_id: str, form: Form) -> str:
    """Do an action and return the id of the run to look at next (raises what the command raises)."""
    return await _ACTIONS[name](runs, run_id, form)


async def _cancel(runs: Runs, run_id: str, _: Form) -> str:
    await runs.acancel(run_id)
    return run_id


async def _now(runs: Runs, run_id: str, _: Form) -> str:
    await runs.anow(run_id)
    return run_id


async def _retry(runs: Runs, run_id: str, form: Form) -> str:
    # A form that is sent twice is one retry.
    return (await runs.aretry(run_id, idempotency_key=form.get("key") or None)).run_id


async def _resume(runs: Runs, run_id: str, form: Form) -> str:
    interrupt_id, question_id = form.get("interrupt_id"), form.get("question_id") or None
    text = form.get("value", "").strip()
    value = _json(text, "the answer") if text else None
    if interrupt_id:
        asked = [one for one in await runs.aquestions(run_id) if one.kind is QuestionKind.INTERRUPT]
        if len(asked) > 1:
            value = {interrupt_id: value}
    await runs.aresume(run_id, value, question_id=question_id, by=_by(form))
    return run_id


async def _resolve(runs: Runs, run_id: str, form: Form) -> str:
    said = form.get("happened")
    if said not in {"yes", "no"}:
        msg = "say whether the call happened"
        raise InvalidInput(msg)
    text = form.get("result", "").strip()
    result = _json(text, "the result") if text and said == "yes" else None
    await runs.aresolve(form.get("operation_id", ""), happened=said == "yes", result=result, by=_by(form))
    return run_id


async def _raise_budget(runs: Runs, run_id: str, form: Form) -> str:
    limits: dict[str, Any] = {name: _number(form.get(name, ""), name) for name in ("loops", "tool_calls", "tokens")}
    budget = Budget(**limits, cost=_money(form.get("cost_micros", "")))
    await runs.araise_budget(run_id, budget, by=_by(form))
    return run_id


async def _recover(runs: Runs, run_id: str, form: Form) -> str:
    await runs.arecover(run_id, plan=form.get("plan", ""))
    return run_id


_ACTIONS: Final[dict[str, Action]] = {
    "cancel": _cancel,
    "now": _now,
    "retry": _retry,
    "resume": _resume,
    "resolve": _resolve,
    "raise-budget": _raise_budget,
    "recover": _recover,
}


def is_action(name: str) -> bool:
    """Return whether there is an action of that name."""
    return name in _ACTIONS


def _by(form: Form) -> str | None:
    return form.get("by", "").strip() or None


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        msg = f'{what} is not JSON: {error}. A text has quotes around it: "yes"'
        raise InvalidInput(msg) from error


def _number(text: str, name: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError as error:
        msg = f"{name} is not a whole number: {text!r:.50}"
        raise InvalidInput(msg) from error


def _money(text: str) -> Decimal | None:
    if not text.strip():
        return None
    try:
        return Decimal(text.strip())
    except InvalidOperation as error:
        msg = f"the cost is not a number: {text!r:.50}"
        raise InvalidInput(msg) from error
