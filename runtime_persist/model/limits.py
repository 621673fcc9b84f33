"""Every bound in one place, with its unit in its name."""

from __future__ import annotations

from typing import Final

THREAD_ID_BYTES_MAX: Final = 1_024
"""Longest thread id in bytes of UTF-8 (a PostgreSQL index row holds 2,704)."""

INLINE_MANIFEST_BYTES_MAX: Final = 128
"""A channel value up to this size lives in the checkpoint's manifest and is carried from checkpoint to checkpoint."""

INLINE_ROW_BYTES_MAX: Final = 16_384
"""A payload up to this size lives in its row (pending writes, inputs, results); larger ones go to the content store."""

COMPRESS_BYTES_MIN: Final = 512
"""Smaller content is stored as it is: zstd gains nothing there."""

ADDRESS_BYTES: Final = 16
"""128 bits of a keyed BLAKE3: not forgeable without the space's key, and no accidental collision below 2**64 blobs."""

VALUE_BYTES_MAX: Final = 536_870_912
"""Largest serialized value (512 MiB), unless ``max_value_bytes`` says otherwise: PostgreSQL's field holds 1 GB at most,
a parameter is in memory twice while it is sent, and a value nobody wanted that large is found at its write."""

LEASE_TTL_SECONDS: Final = 30.0
LEASE_RENEWALS_PER_TTL: Final = 3
LEASE_TTL_SECONDS_MIN: Final = 0.2
LEASE_TTL_SECONDS_MAX: Final = 86_400.0

MAX_TAKEOVERS: Final = 3
"""Takeovers in a row without a new committed checkpoint or operation before the run ends as a crash loop."""

RETRY_ATTEMPTS_MAX: Final = 8
"""Tries of one command against a busy or unreachable database."""

BARRIER_SECONDS: Final = 30.0
"""How long an operation waits for its checkpoint row to be durable."""

INVOCATIONS_REMEMBERED_MAX: Final = 4_096
"""Invocations whose loaded heads an optimistic saver remembers (least recently used go first)."""

NAMESPACES_REMEMBERED_MAX: Final = 256
"""Namespaces that a caller without a runtime (a thread or task that only calls the saver) is remembered with."""

DELETE_MARKS_KEPT_DAYS: Final = 30.0
"""How long a late write can tell that its thread was deleted."""

DELETE_MARKS_KEPT_DAYS_MAX: Final = 36_500.0

DELETE_MARKS_ROWS_MAX: Final = 1_000
"""Marks that one transaction deletes."""

MANIFESTS_CACHED_MAX: Final = 4_096
KEYS_CACHED_MAX: Final = 4_096
"""Hashed ids and looked-at names that are kept."""
PAGE_ROWS: Final = 256
"""Checkpoints of one page of a listing: three statements (checkpoints, their writes, their content)."""
ERROR_TEXT_CHARS_MAX: Final = 2_000
EVENT_PAYLOAD_BYTES_MAX: Final = 8_192
SQLITE_VERSION_MIN: Final = (3, 37, 0)
