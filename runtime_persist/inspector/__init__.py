"""Recovery bundles: what a run did, what is unknown, and what recovery would do. Read-only."""

from __future__ import annotations

from runtime_persist.inspector.bundle import RecoveryBundle, load_bundle
from runtime_persist.inspector.database import DatabaseView, load_database

__all__ = ["DatabaseView", "RecoveryBundle", "load_bundle", "load_database"]
