"""Budgets of a run, pure: what its calls may take, and what one call takes of it.

Amounts are whole numbers: loops (calls of a model), calls of tools, tokens, and costs in millionths of the currency.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from runtime_persist.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS: Final = ("loops", "tool_calls", "tokens", "cost_micros")
"""What a budget limits: columns of a ticket, and with a suffix of a run."""

LIMITS: Final = tuple(f"{kind}_limit" for kind in KINDS)
INVOCATION_LIMITS: Final = tuple(f"invocation_{kind}_limit" for kind in KINDS)
"""What each invocation inside a run may take: columns of a run."""

COLUMNS: Final = tuple(f"{kind}_{part}" for kind in KINDS for part in ("limit", "reserved", "consumed"))
EMPTY: Final = {name: 0 for name in COLUMNS if not name.endswith("_limit")}
"""Counters of a new run."""

TicketKind = Literal["loop", "tool_call"]
_MICROS = 1_000_000
_AMOUNT_MAX = 2**62


class TicketState(StrEnum):
    """``reserved`` counts against the limit until it is ``consumed`` (for good) or ``released`` (not at all)."""

    RESERVED = "reserved"
    CONSUMED = "consumed"
    RELEASED = "released"


class Spent(NamedTuple):
    """How much of one kind of a run's budget is taken."""

    limit: int
    reserved: int
    consumed: int


class Room(StrEnum):
    """What a budget says to a call: it fits, it waits until a reserved ticket is settled, or never again."""

    FITS = "fits"
    WAIT = "wait"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the calls of a run may take, over all its attempts, workers and resumes. None: any amount.

    Attributes:
        loops: calls of a model.
        tool_calls: calls of tools.
        tokens: tokens, as the provider reports them.
        cost: money, exact to a millionth.
        per_invocation: what the calls of each invocation may take besides, that is of each call of a graph inside the
            run: a subgraph, an agent in a node or a tool. Calls in nodes of the run's own graph are in none.

    Raises:
        InvalidInput: a limit that is none; limits of an invocation inside those of an invocation.

    """

    loops: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    per_invocation: Budget | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        for name in ("loops", "tool_calls", "tokens"):
            amount(name, getattr(self, name))
        micros(self.cost)
        each: Any = self.per_invocation  # not everybody's code is type-checked
        if each is not None and (not isinstance(each, Budget) or each.per_invocation is not None):
            msg = f"per_invocation is a Budget without one of its own, not {each!r}"
            raise InvalidInput(msg)

    def limits(self) -> dict[str, int | None]:
        """Return the limits as columns of a run."""
        each = self.per_invocation.amounts() if self.per_invocation is not None else [None] * len(KINDS)
        return dict(zip((*LIMITS, *INVOCATION_LIMITS), (*self.amounts(), *each), strict=True))

    def amounts(self) -> list[int | None]:
        """Return the limits of the kinds, in their order."""
        return [self.loops, self.tool_calls, self.tokens, micros(self.cost)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a call took, as the provider reports it (None: what was reserved)."""

    tokens: int | None = None
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a call takes of its run's budget: one loop or one tool call, and what it may use.

    Attributes:
        kind: ``loop`` (a call of a model, which uses tokens and money) or ``tool_call``.
        tokens: reserved before the call, at most what it may use (None: 0; it starts while one token is left).
        cost: the same in money.
        usage: given what the call returned, what it took (None: what was reserved).

    """

    kind: TicketKind
    tokens: int | None = None
    cost: Decimal | None = None
    usage: Callable[[Any], Usage | None] | None = None

    def __post_init__(self) -> None:
        """Check it (raises InvalidInput)."""
        if self.kind not in get_args(TicketKind):
            msg = f"a ticket is for a 'loop' or a 'tool_call', not {self.kind!r}"
            raise InvalidInput(msg)
        amount("tokens", self.tokens)
        micros(self.cost)

    def takes(self) -> dict[str, int]:
        """Return what is reserved, by kind."""
        loop = self.kind == "loop"
        return dict(zip(KINDS, (int(loop), int(not loop), self.tokens or 0, micros(self.cost) or 0), strict=True))

    def needs(self) -> dict[str, int]:
        """Return what must be left of each kind (0: it is not asked): a model is not called with no token left."""
        takes = self.takes()
        least = int(self.kind == "loop")
        return {
            kind: max(taken, least) if kind in {"tokens", "cost_micros"} else taken for kind, taken in takes.items()
        }

    def took(self, value: Any) -> dict[str, int]:
        """Return what is consumed by a call that returned ``value``."""
        found = self.takes()
        usage = self.usage(value) if self.usage is not None else None
        if usage is not None and usage.tokens is not None:
            found["tokens"] = amount("tokens", usage.tokens) or 0
        if usage is not None and usage.cost is not None:
            found["cost_micros"] = micros(usage.cost) or 0
        return found


def amount(name: str, value: object) -> int | None:
    """Return an amount as it was given (raises InvalidInput)."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _AMOUNT_MAX:
        msg = f"{name} is a whole number from 0 on, not {value!r}"
        raise InvalidInput(msg)
    return value


def micros(cost: object) -> int | None:
    """Return money in millionths, exactly (raises InvalidInput: a float is not exact)."""
    if cost is None:
        return None
    found = cost if isinstance(cost, Decimal) else Decimal(cost) if type(cost) is int else Decimal("NaN")
    exact = found.is_finite() and 0 <= found * _MICROS < _AMOUNT_MAX and found * _MICROS == int(found * _MICROS)
    if not exact:
        msg = f"cost is a Decimal from 0 on with at most 6 places, not {cost!r}"
        raise InvalidInput(msg)
    return int(found * _MICROS)


def money(found: int) -> Decimal:
    """Return millionths as money."""
    return Decimal(found) / _MICROS


def is_limited(run: Mapping[str, Any]) -> bool:
    """Return whether a run (its row), or an invocation in it, has a budget."""
    return any(run[name] is not None for name in (*LIMITS, *INVOCATION_LIMITS))


def limits_invocations(run: Mapping[str, Any]) -> bool:
    """Return whether the invocations in a run (its row) have a budget of their own."""
    return any(run[name] is not None for name in INVOCATION_LIMITS)


def spent(run: Mapping[str, Any]) -> dict[str, Spent]:
    """Return what is taken of a run's budget, of the kinds that it limits."""
    return {
        kind: Spent(run[f"{kind}_limit"], run[f"{kind}_reserved"], run[f"{kind}_consumed"])
        for kind in KINDS
        if run[f"{kind}_limit"] is not None
    }


def spent_by(run: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Spent]:
    """Return what is taken of an invocation's budget; ``taken`` is what its tickets come to (``loops_reserved`` …)."""
    return {
        kind: Spent(run[f"invocation_{kind}_limit"], taken[f"{kind}_reserved"] or 0, taken[f"{kind}_consumed"] or 0)
        for kind in KINDS
        if run[f"invocation_{kind}_limit"] is not None
    }


def room(of: Mapping[str, Spent], needs: Mapping[str, int]) -> tuple[Room, str | None]:
    """Return whether a call fits into a budget, and the kind that says it does not.

    It is exhausted only when what is consumed leaves no room: what is reserved may still be given back.
    """
    waits: str | None = None
    for kind, (limit, reserved, consumed) in of.items():
        if needs[kind] and consumed + needs[kind] > limit:
            return Room.EXHAUSTED, kind
        if needs[kind] and consumed + reserved + needs[kind] > limit:
            waits = kind
    return (Room.WAIT, waits) if waits is not None else (Room.FITS, None)
