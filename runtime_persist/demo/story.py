"""The scenarios of the demo and what each must prove. A claim that does not hold makes the exit code non-zero."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sqlalchemy import select

from runtime_persist.demo.cast import LEASE_SECONDS, DemoFailed, WorkerProcess, card_processor, charges
from runtime_persist.engine import run as run_flow
from runtime_persist.inspector import BundleView, load_bundle
from runtime_persist.inspector.render import bundle as render
from runtime_persist.inspector.render import status, table
from runtime_persist.plan import Plan, Query, many
from runtime_persist.runtime import Run, Runtime
from runtime_persist.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_SECONDS = 60.0
_INPUT = {"messages": [{"role": "user", "content": "Please pay order 7."}]}


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing a scenario proves."""

    scenario: str
    text: str
    holds: bool
    seen: str


@dataclass(slots=True)
class Stage:
    """What the scenarios share."""

    runtime: Runtime
    url: str
    folder: Path
    port: int
    progress: Progress
    task: Any
    claims: list[Claim] = field(default_factory=list)
    bundles: list[tuple[str, BundleView]] = field(default_factory=list)
    workers: list[WorkerProcess] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Show what happens."""
        self.progress.console.print(f"  [dim]{text}[/dim]")
        self.progress.advance(self.task)

    def worker(self, name: str, cue: str = "") -> WorkerProcess:
        """Start a worker process."""
        made = WorkerProcess(name, self.url, self.port, self.folder / f"worker-{name}.log", cue=cue)
        self.workers.append(made)
        return made

    def claim(self, scenario: str, text: str, holds: bool, seen: object) -> None:  # noqa: FBT001 (read as a sentence)
        """Note whether something holds."""
        self.claims.append(Claim(scenario, text, holds, str(seen)))

    def wait(self, run: Run, wanted: str) -> None:
        """Wait until a run is shown with a status."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (shown := run.record().shown) != wanted:
            if time.monotonic() > deadline:
                msg = f"run {run.run_id} is {shown}, not {wanted}"
                raise DemoFailed(msg)
            time.sleep(0.05)

    def bundle(self, scenario: str, run: Run) -> BundleView:
        """Read and keep the recovery bundle of a run."""
        found = run_flow(load_bundle(self.runtime.engine, self.runtime.checkpointer.serde, run.run_id))
        self.bundles.append((scenario, found))
        return found

    def effects(self, before: dict[str, Any]) -> tuple[int, int, int]:
        """Return requests, distinct keys and charges since ``before``."""
        now = charges(self.port)
        requests = now["requests"][len(before["requests"]) :]
        return (
            len(requests),
            len({request["key"] for request in requests}),
            len(now["charges"]) - len(before["charges"]),
        )


def killed_in_second_tool(stage: Stage) -> None:
    """(a) Worker A is killed in the middle of the second tool; worker B takes over and finishes."""
    name, before = "a", charges(stage.port)
    run = stage.runtime.runs.start("checkout", _INPUT, thread_id="demo-a", idempotency_key="demo-a")
    a = stage.worker("a1", cue="before-effect")
    a.wait_for_line()
    stage.say("worker A is inside charge_card, nothing was sent yet: SIGKILL")
    a.end(kill=True)
    b = stage.worker("a2")
    stage.wait(run, "succeeded")
    stage.say("worker B took the run over and finished it")
    b.end()
    requests, _, done = stage.effects(before)
    found = stage.bundle(name, run)
    stage.claim(
        name,
        "the run finished under a newer epoch",
        found.run.epoch > (found.attempts[0].epoch or 0),
        f"epoch {found.run.epoch}",
    )
    causes = [attempt.cause for attempt in found.attempts]
    stage.claim(name, "two attempts: initial, takeover", causes == ["initial", "takeover"], causes)
    stage.claim(
        name,
        "the card was charged once",
        (requests, done) == (1, 1),
        f"requests: {requests}, charges: {done}",
    )
    steps = [c.step for c in found.checkpoints if not c.checkpoint_ns]
    stage.claim(name, "no step was stored twice", len(steps) == len(set(steps)), f"steps {steps}")


def killed_before_the_record(stage: Stage) -> None:
    """(b) A is killed after the effect happened and before its result was recorded; the retry has the same key."""
    name, before = "b", charges(stage.port)
    run = stage.runtime.runs.start("checkout", _INPUT, thread_id="demo-b", idempotency_key="demo-b")
    a = stage.worker("b1", cue="after-effect")
    a.wait_for_line()
    stage.say("the card is charged, the result not recorded: SIGKILL")
    a.end(kill=True)
    b = stage.worker("b2")
    stage.wait(run, "succeeded")
    stage.say("worker B sent the charge again with the same idempotency key")
    b.end()
    requests, keys, done = stage.effects(before)
    stage.claim(
        name,
        "two requests carried one key",
        (requests, keys) == (2, 1),
        f"requests: {requests}, keys: {keys}",
    )
    stage.claim(name, "the card was charged once", done == 1, f"charges: {done}")
    tries = [tried.status for operation in stage.bundle(name, run).operations for tried in operation.tries]
    stage.claim(name, "the journal says what is not known", tries == ["unknown", "succeeded"], tries)


def asks_a_person(stage: Stage) -> None:
    """(b') The same with on_unknown="ask": the run waits with the question, and goes on with the answer."""
    name, before = "b'", charges(stage.port)
    run = stage.runtime.runs.start("checkout-ask", _INPUT, thread_id="demo-ask", idempotency_key="demo-ask")
    a = stage.worker("ask1", cue="after-effect")
    a.wait_for_line()
    stage.say("the same kill, with on_unknown='ask'")
    a.end(kill=True)
    b = stage.worker("ask2")
    stage.wait(run, "waiting_approval")
    question = stage.runtime.runs.question(run.run_id)
    stage.say(f"the run waits: did {question['name']}({question['request']}) happen?")
    requests, _, _ = stage.effects(before)
    stage.claim(name, "nothing was sent again", requests == 1, f"requests: {requests}")
    stage.claim(
        name,
        "the question names the call",
        question["kind"] == "unknown_operation",
        question["name"],
    )
    (charged,) = [c for k, c in charges(stage.port)["charges"].items() if k == question["idempotency_key"]]
    stage.runtime.runs.resolve(question["operation_id"], happened=True, result=charged)
    stage.wait(run, "succeeded")
    stage.say("a person looked it up (it happened), and the run finished")
    b.end()
    requests, _, done = stage.effects(before)
    stage.claim(
        name,
        "after the answer still one request",
        (requests, done) == (1, 1),
        f"requests: {requests}, charges: {done}",
    )
    stage.bundle(name, run)


def stopped_past_its_lease(stage: Stage) -> None:
    """(c) A is stopped past its lease, B finishes, A continues: every write of A is refused and changes nothing."""
    name, before = "c", charges(stage.port)
    run = stage.runtime.runs.start("checkout", _INPUT, thread_id="demo-c", idempotency_key="demo-c")
    a = stage.worker("c1", cue="before-effect")
    a.wait_for_line()
    stage.say("worker A is inside charge_card: SIGSTOP, until its lease has run out")
    a.send(signal.SIGSTOP)
    stage.wait(run, "unknown")
    b = stage.worker("c2")
    stage.wait(run, "succeeded")
    stage.say("worker B took over and finished; A continues: SIGCONT")
    b.end()
    rows = _dump(stage.runtime)
    a.give_the_word()
    a.send(signal.SIGCONT)
    refused = json.loads(a.wait_for_line())
    a.end()
    unchanged = _dump(stage.runtime) == rows
    for kind, code in refused.items():
        stage.claim(name, f"A's {kind} was refused", code in {"LEASE_LOST", "LEASE_RELEASED"}, code)
    stage.claim(name, "no run, thread or call changed by it", unchanged, f"{len(rows)} rows compared")
    _, keys, done = stage.effects(before)
    stage.claim(name, "the card was charged once", (keys, done) == (1, 1), f"keys: {keys}, charges: {done}")
    stage.bundle(name, run)


# What a worker says of itself (its free slots) it says again when it goes on; that is nobody's run.
_TABLES = {
    name: Query(f"dump_{name}", select(table)) for name, table in metadata.tables.items() if name != "rp_instances"
}


def _dump(runtime: Runtime) -> list[str]:
    """Return every row of every table but the workers' reports, as text and in an order of its own."""

    def plan() -> Plan[list[str]]:
        rows: list[str] = []
        for name, query in _TABLES.items():
            rows += [f"{name} {dict(row)}" for row in (yield from many(query))]
        return sorted(rows)

    return runtime.engine.coordinator.read("dump", plan, snapshot=True).result()


_SCENARIOS: tuple[tuple[Callable[[Stage], None], int], ...] = (
    (killed_in_second_tool, 2),
    (killed_before_the_record, 2),
    (asks_a_person, 3),
    (stopped_past_its_lease, 2),
)


def main(*, keep: bool = False) -> int:
    """Play all scenarios and print what was proved; return the exit code."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="runtime-persist-demo-"))
    url = f"sqlite:///{folder / 'agents.db'}"
    console.print(
        f"[bold]runtime_persist demo[/bold]: an agent pays an order; its workers are real processes on one SQLite "
        f"file,\nleases last {LEASE_SECONDS:g} s, the card processor is a process of its own.\n",
    )
    try:
        code = _play(console, folder, url)
    finally:
        if keep:
            _show_kept(console, folder, url)
        else:
            console.print("\nto look at the runs yourself: [bold]runtime-persist demo --keep[/bold]")
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _play(console: Console, folder: Path, url: str) -> int:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with card_processor() as port, Runtime.open(url, lease_ttl=LEASE_SECONDS) as runtime:
        for name in ("checkout", "checkout-ask"):
            run_flow(runtime.register(name))
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("recovering", total=sum(steps for _, steps in _SCENARIOS))
            stage = Stage(runtime, url, folder, port, progress, task)
            try:
                for scenario, _ in _SCENARIOS:
                    console.print((scenario.__doc__ or "").strip(), style="bold")
                    scenario(stage)
            except DemoFailed as error:
                stage.claim("–", "the demo got to its end", False, error)
            finally:
                for worker in stage.workers:
                    worker.end(kill=True)
        _show(console, stage)
        if any(not claim.holds for claim in stage.claims):
            _show_logs(console, folder)
            return 1
    return 0


def _show(console: Console, stage: Stage) -> None:
    proofs = table("what was proved", "", "claim", "holds", "seen")
    for claim in stage.claims:
        proofs.add_row(
            claim.scenario,
            claim.text,
            "[green]yes[/green]" if claim.holds else "[red]NO[/red]",
            claim.seen,
        )
    attempts = table("attempts", "", "run", "no", "cause", "epoch", "status", "reason")
    for scenario, found in stage.bundles:
        for attempt in found.attempts:
            attempts.add_row(
                scenario, found.run.run_id, str(attempt.attempt_no), attempt.cause, str(attempt.epoch),
                status(attempt.status), attempt.termination_reason or "",
            )  # fmt: skip
    log = charges(stage.port)
    console.print()
    console.print(proofs)
    console.print()
    console.print(attempts)
    count = f"{len(log['requests'])} requests, {len(log['charges'])} charges"
    console.print(f"\nat the card processor: {count} for {len(stage.bundles)} orders")
    for scenario, found in stage.bundles:
        if scenario == "b":
            console.print("\n[bold]what `runtime-persist inspect` shows of (b)[/bold]")
            console.print(render(found))


def _show_kept(console: Console, folder: Path, url: str) -> None:
    console.print(f"\nkept in {folder}; look at any run with\n", highlight=False)
    console.print(f"  runtime-persist run list --url {url}", soft_wrap=True, highlight=False)
    console.print(f"  runtime-persist inspect RUN --url {url}", soft_wrap=True, highlight=False)


def _show_logs(console: Console, folder: Path) -> None:
    for log in sorted(folder.glob("worker-*.log")):
        console.print(f"\n[dim]{log.name}[/dim]\n{log.read_text(errors='replace')[-2000:]}", markup=False)
