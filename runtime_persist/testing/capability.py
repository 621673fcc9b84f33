"""What our own capabilities for LangGraph's checkpointer conformance kit share: running checks, and their report.

A check is an async function of a saver whose name says what holds. It returns the reason it passed for (or None),
raises AssertionError when it does not hold, and :class:`NotOffered` when the saver has no such thing.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer

Saver = Any
"""A ``BaseCheckpointSaver`` with any version type."""
Check = Callable[..., Awaitable[str | None]]
OnTestResult = Callable[[str, str, bool, str | None], None]
"""The kit's: called with capability, check, whether it passed, and the traceback if not."""


class NotOffered(Exception):
    """The saver does not offer what a check needs: the check is skipped."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check came to: passed, failed, or skipped (``passed`` is None), and why."""

    name: str
    passed: bool | None
    reason: str


@dataclass(slots=True)
class Report:
    """All checks of one capability of one saver, in the form of the kit's ``CapabilityResult``."""

    checkpointer_name: str
    capability: str
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def detected(self) -> bool:
        """Whether there was something to judge."""
        return any(check.passed is not None for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether no check failed (skipped ones do not count)."""
        return self.detected and not self.failures

    @property
    def failures(self) -> list[str]:
        """Name and reason of each failed check."""
        return [f"{check.name}: {check.reason}" for check in self.checks if check.passed is False]

    def verdicts(self) -> dict[str, str]:
        """Return name -> ``passed``, ``failed`` or ``skipped``."""
        words = {True: "passed", False: "failed", None: "skipped"}
        return {check.name: words[check.passed] for check in self.checks}

    def to_dict(self) -> dict[str, Any]:
        """Return what can be written as JSON, as the kit's report does."""
        verdicts = list(self.verdicts().values())
        return {
            "checkpointer_name": self.checkpointer_name,
            "results": {
                self.capability: {
                    "detected": self.detected,
                    "passed": self.passed,
                    "tests_passed": verdicts.count("passed"),
                    "tests_failed": verdicts.count("failed"),
                    "tests_skipped": verdicts.count("skipped"),
                    "failures": self.failures,
                },
            },
        }

    def print_report(self) -> None:
        """Print one line a check."""
        click.echo(f"{self.capability.replace('_', ' ')}: {self.checkpointer_name}")
        for check, verdict in zip(self.checks, self.verdicts().values(), strict=True):
            click.echo(f"  {verdict:8}{check.name}" + (f": {check.reason}" if check.reason else ""))

    def finish(self, *, as_json: bool) -> None:
        """Print the report (as JSON, if asked) and end the process: 0 if it passed, else 1."""
        if as_json:
            click.echo(json.dumps(self.to_dict(), indent=2))
        else:
            self.print_report()
        sys.exit(0 if self.passed else 1)


async def run_checks(
    capability: str,
    checks: Sequence[Check],
    *args: Any,
    on_test_result: OnTestResult | None = None,
) -> list[CheckResult]:
    """Run each check with ``args``; a failing one does not keep the others from running."""
    results: list[CheckResult] = []
    for check in checks:
        error: str | None = None
        name = check.__name__
        try:
            result = CheckResult(name, passed=True, reason=await check(*args) or "")
        except NotOffered as skipped:
            result = CheckResult(name, passed=None, reason=str(skipped))
        except Exception as failure:  # noqa: BLE001 (of somebody's saver)
            error = traceback.format_exc()
            reason = str(failure) if isinstance(failure, AssertionError) else f"{type(failure).__name__}: {failure}"
            result = CheckResult(name, passed=False, reason=reason)
        results.append(result)
        if on_test_result is not None and result.passed is not None:
            on_test_result(capability, result.name, result.passed, error)
    return results


def holds(condition: bool, reason: str) -> None:  # noqa: FBT001 (as assert, which python -O leaves out)
    """Raise AssertionError with a reason if a condition does not hold."""
    if not condition:
        raise AssertionError(reason)


def equal(found: Any, expected: Any, what: str) -> None:
    """Raise AssertionError that says what was found if it is not what was expected."""
    holds(found == expected, f"{what}: {found!r} instead of {expected!r}")


def where(registered: RegisteredCheckpointer) -> str | None:
    """Return ``module:attribute`` of a registered saver, None if another process could not import it."""
    module = sys.modules.get(registered.factory.__module__)
    if module is None or module.__name__ == "__main__":
        return None
    for name, value in vars(module).items():
        if value is registered:
            return f"{module.__name__}:{name}"
    return None


def load(target: str) -> RegisteredCheckpointer:
    """Return the registered saver at ``module:attribute`` (modules of the current folder included)."""
    sys.path.insert(0, "")
    module, _, name = target.partition(":")
    found: RegisteredCheckpointer = getattr(importlib.import_module(module), name)
    return found
