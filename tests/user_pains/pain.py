"""What one row of users' pains says. This file imports nothing of the package."""

from __future__ import annotations

from typing import NamedTuple


class Pain(NamedTuple):
    """One row.

    Attributes:
        title: what users did, or what happened to them.
        promise: what holds here.
        tests: ``file::name`` below ``tests/``.
        bench: what ``bench/`` measures under the row's id.

    """

    title: str
    promise: str
    tests: tuple[str, ...]
    bench: str = ""
