"""The fixtures of this suite: the acceptance matrices, row by row (see rows.py)."""

from tests.support.plugin import *  # noqa: F403
