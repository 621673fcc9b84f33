"""Recovery bundles: everything that is stored about a run, hashed, in memory or as one file."""

from __future__ import annotations

from runtime_persist.inspector.bundles.export import Limits, export
from runtime_persist.inspector.bundles.recovery import RecoveryBundle, read_bundle
from runtime_persist.inspector.bundles.verify import Verified, open_bundle, verify

__all__ = ["Limits", "RecoveryBundle", "Verified", "export", "open_bundle", "read_bundle", "verify"]
