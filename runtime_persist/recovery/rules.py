"""What a row of the table is: a situation, what proves it, what is done about it, why, and what that does outside."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Subject(StrEnum):
    """What a row is about."""

    RUN = "run"
    DOMAIN = "domain"
    TASK = "task"
    CALL = "call"
    TICKET = "ticket"


class Act(StrEnum):
    """What is done. Whoever does it (a worker, the journal) has one piece of code for each of its own."""

    NOTHING = "nothing"
    WAIT = "wait"  # for time, or for a person: nothing is done before
    # of a run
    CLAIM = "claim"
    TAKE_OVER = "take_over"
    ASK_RUNTIME = "ask_runtime"
    GIVE_UP = "give_up"
    END = "end"
    # of a domain
    REVOKE = "revoke"
    # of a task
    KEEP = "keep"
    RUN_AGAIN = "run_again"
    # of a call
    START = "start"
    RETURN = "return"
    RAISE = "raise"
    ACCEPT = "accept"
    CALL_AGAIN = "call_again"
    FAIL = "fail"
    ASK_OUTSIDE = "ask_outside"
    ASK_PERSON = "ask_person"
    # of a ticket
    SETTLE = "settle"


class Outside(StrEnum):
    """What the action does outside the database.

    ``none``: it calls nothing and ends nothing. ``at most once``: it makes a call of which it is proved that it was not
    made. ``may be repeated``: it does again what may have been done. ``asks``: a person, or the outside, is asked what
    happened; that decides. ``ends``: it ends what the older attempt left running.
    """

    NONE = "none"
    AT_MOST_ONCE = "at most once"
    MAY_REPEAT = "may be repeated"
    ASKS = "asks"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    Attributes:
        name: stable, for programs; it is part of a plan's hash.
        subject: what it is about.
        situation: what the rows say.
        evidence: the rows that prove it.
        happened: what may have happened outside before. Rows of the database never say more than this.
        act: what is done.
        action: in words.
        reason: why that and nothing else.
        outside: what doing it does outside.

    """

    name: str
    subject: Subject
    situation: str
    evidence: str
    happened: str
    act: Act
    action: str
    reason: str
    outside: Outside
