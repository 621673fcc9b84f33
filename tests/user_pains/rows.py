"""What users of other savers suffered from, what is promised here, and the tests that show it.

``docs/user-pains.md`` is drawn from :data:`ROWS` by ``docs/generate.py``. Time and throughput stand in ``bench/``
under the row's id; the tests check what can be counted. The rows stand in ``rows_a_to_e.py`` and
``rows_f_to_l.py``; none of these files imports anything of the package.
"""

from __future__ import annotations

from tests.user_pains import rows_a_to_e, rows_f_to_l

GROUPS = {
    "A": "Ownership of a thread",
    "B": "Crashes and the order of writes",
    "C": "Effects and their records",
    "D": "Budgets",
    "E": "Growth and deletion",
    "F": "Connections, locks, loops",
    "G": "Values",
    "H": "Ids, filters, listings",
    "I": "Secrets and forged rows",
    "J": "Upgrades and imports",
    "K": "Branches, subgraphs, copies",
    "L": "Large values",
}
"""Headings of the page, by the first letter of an id."""

ROWS = {**rows_a_to_e.ROWS, **rows_f_to_l.ROWS}
