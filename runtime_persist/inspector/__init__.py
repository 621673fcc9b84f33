"""Recovery bundles: what a run did, what is unknown, and what recovery would do. Read-only."""

from __future__ import annotations

from runtime_persist.inspector.bundle import BundleView, load_bundle
from runtime_persist.inspector.bundles import RecoveryBundle, read_bundle
from runtime_persist.inspector.database import DatabaseView, load_database

__all__ = ["BundleView", "DatabaseView", "RecoveryBundle", "load_bundle", "load_database", "read_bundle"]
