"""The acceptance matrices of the specification: what is required, and the tests that show it.

``docs/acceptance.md`` is drawn from :data:`ROWS` by ``docs/generate.py``. The rows stand in ``rows_states.py``,
``rows_model.py`` and ``rows_faults.py``; none of these files imports anything of the package.
"""

from __future__ import annotations

from tests.acceptance import rows_faults, rows_model, rows_states

GROUPS = {
    "A": "States that are proved",
    "V": "State model and transactions",
    "DB": "Faults of process, database and content",
}
"""Headings of the page, by the letters of an id."""

ROWS = {**rows_states.ROWS, **rows_model.ROWS, **rows_faults.ROWS}
"""By id, in the order of the page."""
