"""Metrics, traces and structured logs. OpenTelemetry is optional: without its API nothing is measured."""

from __future__ import annotations

from runtime_persist.telemetry.attempt import AttemptScope
from runtime_persist.telemetry.logs import JsonFormatter, RunFilter, logger
from runtime_persist.telemetry.telemetry import Telemetry, active, configure

__all__ = ["AttemptScope", "JsonFormatter", "RunFilter", "Telemetry", "active", "configure", "logger"]
