"""A graph is run, and what it streams is sent to whoever reads it meanwhile. Nothing is stored, and nobody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.engine.wishes import of_stream
from runtime_persist.model import limits
from runtime_persist.model.streams import BASE_MODES, BEGIN, CHUNK, OVER, SUBGRAPHS, Frame

if TYPE_CHECKING:
    from runtime_persist.adapters.workflow.execution import Execution
    from runtime_persist.engine import Engine, OwnedRun


INTERRUPT = "__interrupt__"
"""LangGraph's key of questions in a chunk and in an output."""


async def invoke(call: Execution) -> Any:
    """Run the graph to its end and return its output, as ``ainvoke`` does."""
    publisher = Publisher(call.engine, call.owned)
    latest: Any = None
    interrupts: list[Any] = []
    publisher.begin()
    try:
        chunk: Any
        async for chunk in call.graph.astream(
            call.input,
            call.config,
            stream_mode=publisher.modes,  # type: ignore[arg-type]  # LangGraph's names
            subgraphs=publisher.subgraphs,
            output_keys=call.graph.output_channels,
            control=call.control,
        ):
            ns, mode, data = chunk if publisher.subgraphs else ((), *chunk)
            if not ns and mode == "values":
                latest = data
            elif not ns and mode == "updates" and isinstance(data, dict) and data.get(INTERRUPT) is not None:
                interrupts += data[INTERRUPT]
            publisher.chunk(ns, mode, data)
    finally:
        publisher.end()
    if interrupts:
        return {**latest, INTERRUPT: interrupts} if isinstance(latest, dict) else {INTERRUPT: interrupts}
    return latest


class Publisher:
    """Sends the chunks of one attempt, as long as somebody reads them.

    Attributes:
        modes: the stream modes that the attempt has.
        subgraphs: its subgraphs are streamed too.

    """

    def __init__(self, engine: Engine, owned: OwnedRun) -> None:
        """Send what ``owned`` streams."""
        self._notifications = engine.notifications
        self._wishes = engine.wishes
        self._owned = owned
        self._run_id = owned.lease.run_id
        self._number = 0
        self._wishes.listen()
        wanted, self.subgraphs = self._wishes.of(self._run_id)
        self.modes = [*BASE_MODES, *sorted(wanted - set(BASE_MODES))]

    def begin(self) -> None:
        """Say that the attempt executes the run from now on: whoever reads it says that he does."""
        self._wishes.answer(self._run_id, self._say_begin)
        self._say_begin()

    def chunk(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        """Send a chunk, if anybody reads; one that is too large, or has no stored form, is left out, and missed."""
        number = self._number
        self._number += 1
        if not self._wishes.is_wanted(self._run_id):
            return
        try:
            form, body = self._owned.serde.dumps_typed(data)
        except Exception:  # noqa: BLE001 (whatever a graph streams: it must not fail for its readers)
            return
        if len(body) <= limits.STREAM_CHUNK_BYTES_MAX:
            self._send(self._frame(CHUNK, number, mode=mode, ns=tuple(ns), form=form, data=bytes(body)))

    def end(self) -> None:
        """Say that nothing of this attempt follows."""
        self._wishes.answer(self._run_id, None)
        if self._wishes.is_wanted(self._run_id):
            self._send(self._frame(OVER, self._number))

    def _say_begin(self) -> None:
        has = [*self.modes, SUBGRAPHS] if self.subgraphs else self.modes
        self._send(self._frame(BEGIN, self._number, mode=",".join(has)))

    def _frame(self, kind: str, number: int, **fields: Any) -> Frame:
        return Frame(kind, self._owned.attempt_id or "", self._owned.lease.epoch, number, **fields)

    def _send(self, frame: Frame) -> None:
        self._notifications.publish(of_stream(self._run_id), frame.encoded())
