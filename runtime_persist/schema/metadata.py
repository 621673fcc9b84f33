"""MetaData and what the table files share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, CheckConstraint, Column, LargeBinary, MetaData, Text

from runtime_persist.dialects.sql import KeyText
from runtime_persist.dialects.transactions import unnamed_number

if TYPE_CHECKING:
    from enum import StrEnum

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    },
)


def key(name: str, *, primary: bool = False, null: bool = False, default: str | None = None) -> Column[str]:
    """Return a column of text compared byte by byte (``default``: of rows that older code writes)."""
    return Column(name, KeyText, primary_key=primary, nullable=null, server_default=default)


def words(name: str, *, null: bool = False) -> Column[str]:
    """Return a column of text that is only shown."""
    return Column(name, Text, nullable=null)


def number(name: str, *, primary: bool = False, null: bool = False, default: int | None = None) -> Column[int]:
    """Return a column of a 64-bit integer; times are microseconds since 1970, their names end in ``_us``."""
    said = None if default is None else str(default)
    return Column(name, BigInteger, primary_key=primary, nullable=null, autoincrement=False, server_default=said)


def transaction(name: str, *, null: bool = False) -> Column[int]:
    """Return a column of a transaction's number; rows that older code writes get theirs too."""
    return Column(name, BigInteger, nullable=null, server_default=unnamed_number())


def data(name: str, *, primary: bool = False, null: bool = False) -> Column[bytes]:
    """Return a column of bytes."""
    return Column(name, LargeBinary, primary_key=primary, nullable=null)


def one_of(column: str, states: type[StrEnum]) -> CheckConstraint:
    """Return the CHECK that a column holds a state of the model."""
    listed = ", ".join(f"'{state.value}'" for state in states)
    return CheckConstraint(f"{column} IN ({listed})", name=column)
