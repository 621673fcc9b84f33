"""Two writers on one thread: a capability for LangGraph's checkpointer conformance kit, for any saver.

The kit (``langgraph-checkpoint-conformance``) has one writer in every test. Here each check has two, and the second
one must not be able to lose what the first one stored. A check is *refused* when the late write raises anything, and
passes only if the rows say so too.

    from langgraph.checkpoint.conformance import checkpointer_test

    @checkpointer_test(name="MySaver")
    async def my_saver():
        async with MySaver.open("…") as saver:
            yield saver

    report = await two_writers_test(my_saver)
    report.print_report()

or ``python -m runtime_persist.testing.two_writers module:my_saver``.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import signal
import sys
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import click
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base import id as ids

from runtime_persist.testing.capability import (
    CheckResult,
    NotOffered,
    OnTestResult,
    Report,
    Saver,
    holds,
    load,
    run_checks,
    where,
)

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import Checkpoint
    from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer

CAPABILITY = "two_writers"
_DEADLINE_SECONDS = 60.0
_UUID_EPOCH_TICKS = 0x01B21DD213814000
_target: ContextVar[str | None] = ContextVar("target", default=None)

Takeover = Callable[[Any, str], AbstractAsyncContextManager[tuple[Any, Any]]]
"""``async with hook(saver, thread_id) as (stale, current)``: sessions, of which the second took the thread over."""


# --- what the checks share ------------------------------------------------------------------------------------------


def _config(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    place = {"thread_id": thread_id, "checkpoint_ns": ""}
    return {"configurable": place | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def _next(value: str, after: Checkpoint | None = None) -> Checkpoint:
    made = empty_checkpoint()
    made["channel_values"] = {"a": value}
    made["channel_versions"] = {"a": f"{int(after['channel_versions']['a']) + 1 if after else 1:032}"}
    return made


async def _put(saver: Saver, config: RunnableConfig, made: Checkpoint) -> RunnableConfig:
    metadata = {"source": "loop", "step": 1}
    placed: RunnableConfig = await saver.aput(config, made, metadata, made["channel_versions"])
    return placed


async def _value(saver: Saver, thread_id: str) -> Any:
    found = await saver.aget_tuple(_config(thread_id))
    return None if found is None else found.checkpoint["channel_values"].get("a")


async def _refused(write: Coroutine[Any, Any, Any]) -> str | None:
    """Return the name of the error that refused a write, None if it was accepted."""
    try:
        await write
    except Exception as error:  # noqa: BLE001 (a refusal may be any error)
        return type(error).__name__
    return None


# --- the checks -----------------------------------------------------------------------------------------------------


async def stale_put(saver: Saver, _: Takeover | None) -> str:
    """Two clones load one head and both put on it: the second put is refused, and the first one's value stays."""
    thread_id = str(uuid.uuid4())
    first = _next("start")
    await _put(saver, _config(thread_id), first)
    loaded, go_on = asyncio.Event(), asyncio.Event()
    one, other = copy.copy(saver), copy.copy(saver)

    async def late() -> str | None:
        found = await other.aget_tuple(_config(thread_id))
        loaded.set()
        await go_on.wait()
        return await _refused(_put(other, found.config, _next("late", first)))

    waiting = asyncio.create_task(late())
    await loaded.wait()

    async def early() -> None:
        found = await one.aget_tuple(_config(thread_id))
        await _put(one, found.config, _next("early", first))

    await asyncio.create_task(early())
    go_on.set()
    refusal = await waiting
    holds(refusal is not None, "the second put from one head was accepted: the first update is on a lost branch")
    holds(await _value(saver, thread_id) == "early", "the value of the first writer is gone")
    return f"refused with {refusal}"


async def stale_put_writes(saver: Saver, takeover: Takeover | None) -> str:
    """A session whose thread was taken over stores no writes."""
    if takeover is None:
        msg = "the saver offers no sessions"
        raise NotOffered(msg)
    thread_id = str(uuid.uuid4())
    async with takeover(saver, thread_id) as (stale, current):
        placed = await _put(current, _config(thread_id), _next("new"))
        refusal = await _refused(stale.aput_writes(placed, [("a", "late")], str(uuid.uuid4())))
        holds(refusal is not None, "writes of a session that was taken over were accepted")
        found = await current.aget_tuple(_config(thread_id))
        holds(not found.pending_writes, "writes of a session that was taken over were stored")
    return f"refused with {refusal}"


async def late_write_after_delete(saver: Saver, _: Takeover | None) -> str:
    """Who still has a config of a deleted thread cannot bring it back; a new run on the id can use it."""
    thread_id = str(uuid.uuid4())
    first = _next("old")
    placed = await _put(saver, _config(thread_id), first)
    await saver.adelete_thread(thread_id)

    async def late() -> tuple[str | None, str | None]:
        put = await _refused(_put(saver, placed, _next("late", first)))
        return put, await _refused(saver.aput_writes(placed, [("a", "late")], str(uuid.uuid4())))

    put, writes = await asyncio.create_task(late())
    holds(await saver.aget_tuple(_config(thread_id)) is None, "a late put brought the deleted thread back")
    holds(put is not None, "a late put after delete_thread was accepted")
    holds(writes is not None, "late writes after delete_thread were accepted")
    accepted = await asyncio.create_task(_refused(_put(saver, _config(thread_id), _next("anew"))))
    holds(accepted is None, f"a new run on the id of a deleted thread is refused ({accepted})")
    return f"refused with {put} and {writes}"


async def stopped_process(saver: Saver, _: Takeover | None) -> str:
    """Another process loads the head and is stopped (SIGSTOP); this one goes on; the other wakes and is refused."""
    target = _target.get()
    if target is None:
        msg = "no other process can make this saver: give its factory as module:attribute"
        raise NotOffered(msg)
    thread_id = str(uuid.uuid4())
    first = _next("start")
    await _put(saver, _config(thread_id), first)
    command = (sys.executable, "-m", "runtime_persist.testing.two_writers", target, "--other", thread_id)
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        if await _line(other) != "loaded":
            msg = "another process does not see what this one stored"
            raise NotOffered(msg)
        other.send_signal(signal.SIGSTOP)
        found = await saver.aget_tuple(_config(thread_id))
        await _put(saver, found.config, _next("new", first))
        other.send_signal(signal.SIGCONT)
        _go_on(other)
        outcome = await _line(other)
    finally:
        with contextlib.suppress(ProcessLookupError):
            other.kill()
        await other.wait()
    holds(outcome != "accepted", "the put of a process that was stopped meanwhile was accepted")
    holds(await _value(saver, thread_id) == "new", "the value of the process that went on is gone")
    return f"refused with {outcome}"


async def clock_behind(saver: Saver, _: Takeover | None) -> str:
    """A put whose id clock is behind the head's is what the next load gives, or is refused: it is never lost."""
    thread_id = str(uuid.uuid4())
    clock: Any = ids  # the only place where LangGraph keeps it is a private name
    before = clock._last_v6_timestamp  # noqa: SLF001
    try:
        clock._last_v6_timestamp = int((time.time() + 3_600) * 10_000_000) + _UUID_EPOCH_TICKS  # noqa: SLF001
        ahead = _next("ahead")
        await _put(saver, _config(thread_id), ahead)
        clock._last_v6_timestamp = None  # noqa: SLF001 (as in a fresh process)

        async def behind() -> str | None:
            found = await saver.aget_tuple(_config(thread_id))
            return await _refused(_put(saver, found.config, _next("behind", ahead)))

        refusal = await asyncio.create_task(behind())
    finally:
        clock._last_v6_timestamp = before  # noqa: SLF001
    if refusal is not None:
        return f"refused with {refusal}"
    holds(await _value(saver, thread_id) == "behind", "an acknowledged put is not what the next load gives")
    return "the next load gives it"


CHECKS = (stale_put, stale_put_writes, late_write_after_delete, stopped_process, clock_behind)
"""All checks; the name of each is the function's, its meaning the docstring."""


async def run_two_writers_tests(
    saver: Saver,
    on_test_result: OnTestResult | None = None,
    *,
    session: Takeover | None = None,
) -> list[CheckResult]:
    """Run the checks on one saver."""
    return await run_checks(CAPABILITY, CHECKS, saver, session, on_test_result=on_test_result)


async def two_writers_test(
    registered: RegisteredCheckpointer,
    *,
    session: Takeover | None = None,
    target: str | None = None,
    on_test_result: OnTestResult | None = None,
) -> Report:
    """Judge a saver that is registered with the kit's ``@checkpointer_test``.

    Args:
        registered: what the decorator returns. Each call of its factory must open the same database.
        session: hook of a saver with sessions, see :data:`Takeover` (default: the attribute ``session`` of
            ``registered``, None: the saver has none).
        target: ``module:attribute`` of ``registered``, for the check with a second process (default: where it is).
        on_test_result: called after each check, as the kit does.

    """
    report = Report(registered.name, CAPABILITY)
    token = _target.set(target or where(registered))
    try:
        async with registered.enter_lifespan(), registered.create() as saver:
            hook = session or getattr(registered, "session", None)
            report.checks = await run_two_writers_tests(saver, on_test_result, session=hook)
    finally:
        _target.reset(token)
    return report


# --- the other process ----------------------------------------------------------------------------------------------


async def _line(process: asyncio.subprocess.Process) -> str:
    stream: Any = process.stdout
    line: bytes = await asyncio.wait_for(stream.readline(), _DEADLINE_SECONDS)
    return line.decode().strip()


def _go_on(process: asyncio.subprocess.Process) -> None:
    stream: Any = process.stdin
    stream.write(b"go on\n")


async def _other(registered: RegisteredCheckpointer, thread_id: str) -> None:
    """Load the head, wait for the word (stopped, for a while), put, and say what became of it."""
    async with registered.create() as saver:
        found = await saver.aget_tuple(_config(thread_id))
        click.echo("loaded" if found is not None else "missing")
        if found is None:
            return
        sys.stdin.readline()
        late = _next("late", found.checkpoint)
        click.echo(await _refused(_put(saver, found.config, late)) or "accepted")


@click.command()
@click.argument("target", metavar="MODULE:ATTRIBUTE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--other", hidden=True, default=None)
def main(target: str, as_json: bool, other: str | None) -> None:  # noqa: FBT001 (click hands options over by name)
    """Judge the saver that MODULE:ATTRIBUTE (made with the kit's @checkpointer_test) opens."""
    registered = load(target)
    if other is not None:
        asyncio.run(_other(registered, other))
        return
    asyncio.run(two_writers_test(registered, target=target)).finish(as_json=as_json)


if __name__ == "__main__":
    main()
