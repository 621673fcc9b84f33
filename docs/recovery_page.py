"""The page of recovery, drawn from the dispatch table and from where its rows come from."""

from __future__ import annotations

import runpy
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist.recovery.plan import HASH_COVERS
from runtime_persist.recovery.rules import Subject
from runtime_persist.recovery.table import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.recovery.rules import Rule

_SOURCES = Path(__file__).parents[1] / "tests" / "recovery" / "sources.py"
_HEAD = """\
# Recovery

What is done about a run that somebody left, and about each of its calls, is one table: `runtime_persist/recovery/`.
Workers ask it when they have claimed a run, the journal when a node comes to a call that was begun before, the commands
that claim when they tell a takeover from a fresh start. `recover plan` shows what it says, `recover apply` has exactly
that done. This page is drawn from it.

```sh
runtime-persist recover plan RUN                     # or --bundle FILE: the same plan, without the database
runtime-persist recover apply RUN --plan HASH --app app:registry
```

- **A plan** lists the run and each open thing of it: its situation, what that rests on, what may have happened outside
  before, the action, why, and what doing it does outside. Nothing is changed. What waits for time or for a person is
  listed too: about that nothing is done.
- **Its hash** is the same for the same rows, in every process, on both databases, and in a bundle.
  {covers}
- **Applying** reads the rows again and refuses with `RECOVERY_PLAN_CHANGED` when something is not as the plan saw it:
  the error names which parts, as they stand now, and which events were committed since. What could change between that
  look and the claim is compared once more under the claim, which is given back if something did.
- **The old writer first.** A run that was left is claimed under the next epoch; every older epoch is refused from then
  on. What older attempts opened is revoked, with proof, before anything is started; without proof nothing is started
  (`DOMAINS_OPEN`). A live lease is never taken.
- **With the graph** (`--app MODULE:ATTRIBUTE`, as a worker takes it) the run is executed there, to its end or to its
  next question. Without it the run is handed to workers, which take it at once; what needs no graph (ending a stopped
  run, giving up a crash loop) is done.
- Everything goes through the commands that workers use; there is none of its own.

```python
from typing import TypedDict

from langgraph.graph import START, StateGraph
from runtime_persist import Runtime, operation
from runtime_persist.errors import RecoveryPlanChanged
from runtime_persist.worker import recover


@operation(name="charge", on_unknown="retry")
def charge(order: str, *, idempotency_key: str) -> str:
    return f"charged {{order}}"


class State(TypedDict):
    paid: str


def pay(state: State) -> dict:
    return {{"paid": charge("order-7")}}


shop = StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile()

with Runtime.open("sqlite:///shop.db") as runtime:
    runtime.bind(shop, name="shop")
    run = runtime.runs.start("shop", {{"paid": ""}}, thread_id="t")
    plan = runtime.runs.recovery_plan(run.run_id)
    print(plan.run.rule, plan.run.outside)  # run_queued at most once
    print(recover(runtime, run.run_id, plan=plan.hash, graphs={{"shop": shop}}).status)  # succeeded
    try:
        runtime.runs.recover(run.run_id, plan=plan)
    except RecoveryPlanChanged as changed:
        print(changed.details["changed"])  # ['run']
```

`runs.recovery_plan` and `runs.recover` have `a` twins for event loops.

## What the words of the last column mean

| outside | the action |
|---|---|
| none | calls nothing and ends nothing |
| at most once | makes a call, or starts an attempt, of which it is proved that it was not made |
| may be repeated | does again what may have been done: a call under the same idempotency key, or code of a node |
| asks | asks a person, or the outside, what happened; that decides |
| ends | ends what the older attempt left running |

What happened outside before is never known better than the rows say: between the commit that starts a call and the one
that stores its result nothing inside proves anything. Code of a node that stands in no operation runs again with its
task, whatever the table says about calls.
"""
_TITLES = {
    Subject.RUN: ("Runs", "In the order in which they are looked at: the first that holds is the run's."),
    Subject.DOMAIN: ("Execution domains", "What an attempt can write to besides ([domains.md](domains.md))."),
    Subject.TASK: ("Tasks", "Of the outer graph, of which something is stored at the last checkpoint. The others run."),
    Subject.CALL: (
        "Calls",
        "Journalled calls of the outside ([operations.md](operations.md)) whose task has no result.",
    ),
    Subject.TICKET: ("Tickets", "What calls take of the run's budget ([budgets.md](budgets.md))."),
}
_WHERE = {"004": "seed 004, §7.2", "domain": "design, domain §5"}


def page() -> str:
    """Return the page."""
    data = runpy.run_path(str(_SOURCES))
    text = _HEAD.format(covers="\n  ".join(textwrap.wrap(HASH_COVERS, 116)))
    for subject, (title, said) in _TITLES.items():
        rules = [rule for rule in RULES.values() if rule.subject is subject]
        text += f"\n## {title}\n\n{said}\n\n" + _table(rules, data["SHOWN"])
    return text + _sources(data["SOURCES"])


def _table(rules: Sequence[Rule], shown: Mapping[str, Sequence[str]]) -> str:
    text = "| row | situation | evidence | what happened outside | action | why | outside | shown by |\n"
    text += "|---|---|---|---|---|---|---|---|\n"
    for rule in rules:
        tests = "<br>".join(_link(test) for test in shown[rule.name])
        cells = (rule.situation, rule.evidence, rule.happened, rule.action, rule.reason, rule.outside.value, tests)
        text += f"| `{rule.name}` | {' | '.join(cells)} |\n"
    return text


def _sources(sources: Sequence[tuple[str, str, str, tuple[str, ...], str]]) -> str:
    text = "\n## Where the rows come from\n\nEach row of the specification, and the rows of the table that are it.\n\n"
    text += "| of | found | required | here |\n|---|---|---|---|\n"
    for where, found, done, rules, here in sources:
        named = ", ".join(f"`{name}`" for name in rules)
        text += f"| {_WHERE[where]} | {found} | {done} | {'. '.join(part for part in (named, here) if part)} |\n"
    return text


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{file}](../tests/{file})::`{name}`"
