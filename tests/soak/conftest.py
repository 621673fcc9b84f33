"""The fixtures of this suite."""

from tests.support.plugin import *  # noqa: F403
