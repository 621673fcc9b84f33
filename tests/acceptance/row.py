"""What one row of the acceptance matrices says. This file imports nothing of the package."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row of a matrix.

    Attributes:
        scenario: what happens.
        required: what must be the result.
        forbidden: what must not.
        tests: ``file::name`` below ``tests/``.
        here: what the row means in this package, where it says more or something else, or why it has no test.

    """

    scenario: str
    required: str
    forbidden: str = ""
    tests: tuple[str, ...] = ()
    here: str = ""
