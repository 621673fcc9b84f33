"""The attempt protocol for runtimes that hold no lease: they report by the token that came with the attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.report_callback import ReportCallback
from runtime_persist.commands.revoke_callback import RevokeCallback
from runtime_persist.engine import Engine, Flow, arun, payloads, requests, run
from runtime_persist.errors import CallbackRefused, InvalidInput, ReportIgnored
from runtime_persist.model import limits
from runtime_persist.model.callbacks import CallbackToken
from runtime_persist.model.evidence import Observed
from runtime_persist.model.ids import new_id
from runtime_persist.model.text import redacted, storable
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.model.payload import Blob

_MAY_REPORT = [state.value for state in Observed if state is not Observed.UNCONFIRMED]


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """What a report did.

    Attributes:
        accepted: it counts. False: it changed nothing, ``reason`` says why; sending it again changes nothing either.
        reason: ``""``, ``late`` (the attempt has ended, or somebody took the run over), ``duplicate``, ``reordered`` or
            ``missing_sequence``.
        status: of the run, as far as it was looked at.
        last_sequence: the greatest sequence that counts so far, as far as it was looked at.

    """

    accepted: bool
    reason: str = ""
    status: str | None = None
    last_sequence: int | None = None


class Attempts:
    """Reports about attempts. ``runtime.attempts`` makes it; each method has an ``a`` twin for event loops."""

    def __init__(self, engine: Engine, serde: SerializerProtocol) -> None:
        """Use :attr:`Runtime.attempts`."""
        self._engine = engine
        self._serde = serde

    def report(
        self,
        token: str,
        state: str,
        *,
        sequence: int | None,
        result: Any = None,
        error_code: str | None = None,
        error: str | None = None,
        repeatable: bool = True,
        dedupe_key: str | None = None,
    ) -> ReportOutcome:
        """Report what became of an attempt.

        Args:
            token: that came with the attempt.
            state: ``accepted`` (it will be executed), ``running`` (it is: again and again, at least as often as the
                lease time), ``succeeded``, ``failed`` or ``cancelled``.
            sequence: a number that grows with each report about the attempt; smaller ones are ignored.
            result: of a success.
            error_code: of a failure: a stable name.
            error: of a failure: a few words. What stands behind the name of a secret is taken out.
            repeatable: of a failure: a further attempt could end differently.
            dedupe_key: names the report (None: its sequence does). One that was committed is not committed again.

        Raises:
            CallbackRefused: the token is not the attempt's, has expired or was revoked.
            InvalidInput: an argument that cannot be used.
            DomainsOpen: the attempt has an execution domain of which nothing proves that it cannot be written to.

        """
        return run(
            self._report(
                token,
                state,
                sequence=sequence,
                result=result,
                error_code=error_code,
                error=error,
                repeatable=repeatable,
                dedupe_key=dedupe_key,
            )
        )

    async def areport(
        self,
        token: str,
        state: str,
        *,
        sequence: int | None,
        result: Any = None,
        error_code: str | None = None,
        error: str | None = None,
        repeatable: bool = True,
        dedupe_key: str | None = None,
    ) -> ReportOutcome:
        """Do :meth:`report` from an event loop."""
        return await arun(
            self._report(
                token,
                state,
                sequence=sequence,
                result=result,
                error_code=error_code,
                error=error,
                repeatable=repeatable,
                dedupe_key=dedupe_key,
            )
        )

    def revoke(self, run_id: str, attempt_id: str) -> bool:
        """Revoke the token of an attempt; return whether it had one.

        Raises:
            RunNotFound: no such run.
            IllegalTransition: no such attempt of it.

        """
        return run(self._revoke(run_id, attempt_id))

    async def arevoke(self, run_id: str, attempt_id: str) -> bool:
        """Do :meth:`revoke` from an event loop."""
        return await arun(self._revoke(run_id, attempt_id))

    def _revoke(self, run_id: str, attempt_id: str) -> Flow[bool]:
        command = RevokeCallback(
            space=self._engine.space, command_id=new_id(), actor="user", run_id=run_id, attempt_id=attempt_id
        )
        receipt = yield self._engine.coordinator.commit(command)
        return bool(receipt.result["revoked"])

    def _report(
        self,
        token: str,
        state: str,
        *,
        sequence: int | None,
        result: Any,
        error_code: str | None,
        error: str | None,
        repeatable: bool,
        dedupe_key: str | None,
    ) -> Flow[ReportOutcome]:
        engine, given = self._engine, CallbackToken.parsed(token)
        if state not in _MAY_REPORT:
            msg = f"state must be one of {', '.join(_MAY_REPORT)}, not {state!r}"
            raise InvalidInput(msg)
        if sequence is None:
            return ReportOutcome(accepted=False, reason="missing_sequence")
        if type(sequence) is not int or sequence < 1:
            msg = f"sequence must be a number from 1 on, not {sequence!r}"
            raise InvalidInput(msg)
        row = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, given.run_id))
        if row is None:
            msg = f"there is no run {given.run_id!r} in space {engine.space!r}, so the token is good for nothing"
            raise CallbackRefused(msg, run_id=given.run_id)
        data: bytes | None = None
        blobs: tuple[Blob, ...] = ()
        if state == Observed.SUCCEEDED:
            data, blobs = payloads.encode(engine, self._serde, result)
        command = ReportCallback(
            command_id=f"report:{given.attempt_id}:{sequence if dedupe_key is None else dedupe_key}",
            actor=f"runtime:{given.attempt_id}",
            run_id=given.run_id,
            attempt_id=given.attempt_id,
            token_hash=engine.coordinator.keys.callback_hash(given.text),
            observed=Observed(state),
            sequence=sequence,
            result=data,
            error_code=None if state != Observed.FAILED else error_code or "failed",
            error_summary=None if error is None else storable(redacted(error), limits.ERROR_TEXT_CHARS_MAX),
            repeatable=repeatable,
            chance=random.random(),  # noqa: S311 (spreads retries)
            ttl_us=engine.ttl_us,
            callback_ttl_us=round(limits.CALLBACK_SECONDS * 1_000_000),
            owner=engine.owner,
            blobs=blobs,
            **requests.thread_of(engine, row["thread_id"]),
        )
        try:
            receipt = yield engine.coordinator.commit(command)
        except ReportIgnored as ignored:
            facts = ignored.details
            return ReportOutcome(False, facts["reason"], facts.get("status"), facts.get("last_sequence"))
        said = receipt.result
        reason = "" if said["accepted"] else "late"
        return ReportOutcome(said["accepted"], reason, said["status"], said["last_sequence"])
