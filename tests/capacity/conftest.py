"""The fixtures of this suite: the common ones, and runtimes with raw rows beside them."""

from tests.support.plugin import *  # noqa: F403
