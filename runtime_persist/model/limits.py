"""Every bound in one place, with its unit in its name."""

from __future__ import annotations

from typing import Final

THREAD_ID_BYTES_MAX: Final = 1_024
"""Longest thread id in bytes of UTF-8 (a PostgreSQL index row holds 2,704)."""

NAME_BYTES_MAX: Final = 512
"""Longest name of a space, graph, consumer, operation, hook or scope, and longest key: they fit an index row."""

IDENTITY_BYTES_MAX: Final = 2_600
"""Longest identity of an operation: space, thread id, namespace, name, position or key together, in one index row."""

ACTOR_CHARS_MAX: Final = 200
"""Longest name of a person, as recorded with what they said."""

INLINE_MANIFEST_BYTES_MAX: Final = 128
"""A channel value up to this size lives in the checkpoint's manifest and is carried from checkpoint to checkpoint."""

INLINE_INPUT_BYTES_MAX: Final = 1_024
"""The same for an input: the next step consumes it, so it is carried nowhere."""

INLINE_WRITE_BYTES_MAX: Final = 128
"""A pending write up to this size lives in its row; a larger one refers to the content that its channel will have."""

INLINE_ROW_BYTES_MAX: Final = 16_384
"""A payload of its own (an input, a result) up to this size lives in its row; larger ones go to the content store."""

COMPRESS_BYTES_MIN: Final = 512
"""Smaller content is stored as it is: zstd gains nothing there."""

SPLIT_BYTES_MIN: Final = 4_096
"""A smaller value is not split, except a list: a task's write of two messages shares them with the channel."""

SPLIT_DEPTH_MAX: Final = 3
"""Containers inside containers that are split: ``{"files": {name: [lines]}}``."""

SPLIT_ITEMS_MAX: Final = 4_096
SPLIT_ITEM_BYTES_MIN: Final = 64
"""A container of more items than that, and smaller ones on average, is not split: looking at each would cost more."""

GROUP_ITEMS_MIN: Final = 8
GROUP_ITEMS_MAX: Final = 32
GROUP_CUT_MASK: Final = 0x07
"""Items of a list lie in groups of about 16: behind at least 8 one in 8 items ends a group (by its hash), the 32nd does
anyway. A cut by content and not by position: what is left of a list that lost its front has the same groups."""

GROUP_BYTES_MIN: Final = 512
GROUP_BYTES_MAX: Final = 65_536
"""A group has no end before the first of these, and ends at the second however few its items are."""

ITEM_BYTES_MAX: Final = 16_384
ENTRY_BYTES_MAX: Final = 1_024
"""A larger element of a list, or value of a dict, is a segment of its own (or split itself), not part of a group."""

LITERAL_BYTES_MAX: Final = 128
"""Up to this size a piece stays in the reference: a row of its own costs as much."""

CHUNK_BYTES: Final = 131_072
CHUNKED_BYTES_MIN: Final = 262_144
"""Texts, bytes and whole values from the second size on lie in chunks of the first: little memory, and an appended
text shares its front."""

PAGED_PIECES_MAX: Final = 12
PAGE_PIECES_MIN: Final = 4
PAGE_PIECES_MAX: Final = 24
PAGE_CUT_MASK: Final = 0x07
"""A reference of more pieces than the first lies in pages of about 12, cut like groups of items, by the addresses
themselves: an address does not compress, and is repeated in every checkpoint until its value changes."""

SEGMENTS_CACHED_BYTES_MAX: Final = 33_554_432
"""Verified content that a process keeps in memory (32 MiB), so as not to read it again."""

SEGMENT_CACHED_BYTES_MAX: Final = 1_048_576
"""Larger content is not kept."""

KNOWN_ADDRESSES_MAX: Final = 65_536
KNOWN_SECONDS: Final = 1_800.0
"""How long a process relies on content that it sent, or read without a mark, so as not to send it again."""
CARRIED_SECONDS: Final = 3_600.0
"""How long references are carried over from the checkpoint before, counted from when their content was sent or read.
Then all values are sent again. Nothing is relied on for longer, so content is collected safely after twice that."""

COLLECT_HOURS: Final = 24.0
COLLECT_HOURS_MIN: Final = 2.0
COLLECT_HOURS_MAX: Final = 876_000.0
"""How long content stays marked before it is removed, if nobody refers to it then, and the bounds of that."""
COLLECT_ROWS: Final = 1_000
"""Rows of one step of a collection: what is read at once, and content that one transaction marks or removes."""

ADDRESS_BYTES: Final = 16
"""128 bits of a keyed BLAKE3: not forgeable without the space's key, and no accidental collision below 2**64 blobs."""

VALUE_BYTES_MAX: Final = 536_870_912
"""Largest serialized value (512 MiB), unless ``max_value_bytes`` says otherwise: PostgreSQL's field holds 1 GB at most,
a parameter is in memory twice while it is sent, and a value nobody wanted that large is found at its write."""

CONTENT_AHEAD_BYTES_MIN: Final = 8_388_608
CONTENT_PART_BYTES_MAX: Final = 4_194_304
"""Of more new content than the first, a command's content is stored ahead of it, in statements of about the second:
packed, and in the buffers of the driver, there is only so much of it at a time."""

READ_BYTES_MAX: Final = 8_388_608
READ_SEGMENTS_MIN: Final = 32
"""Of more content than the first, a read asks for about so much in a statement, and for so many segments at least
(CHUNKED_BYTES_MIN bounds what they hold)."""

LEASE_TTL_SECONDS: Final = 30.0
LEASE_RENEWALS_PER_TTL: Final = 3
LEASE_TTL_SECONDS_MIN: Final = 0.2
LEASE_TTL_SECONDS_MAX: Final = 86_400.0

IDLE_TRANSACTION_SECONDS: Final = 10.0
"""PostgreSQL ends the session of a writing transaction that sends nothing for so long: of a process that is stopped,
say. Its locks would stand in everybody's way; when it goes on, it sends its command again."""

DOMAIN_HANDLE_CHARS_MAX: Final = 4_096
"""How a revoker finds a domain, as JSON."""

DOMAINS_NAMED_MAX: Final = 16
"""Domains that an event or an error names; of more only the number is told."""

BLOCKED_SECONDS_MAX: Final = 600.0
"""The longest that a worker leaves a run whose takeover it could not finish to others (or a lease, if longer)."""

PAUSE_SECONDS: Final = 1.0
"""How long a worker claims nothing of a graph whose runtime could start nothing; each time in a row twice as long."""

PAUSE_SECONDS_MAX: Final = 60.0
"""The longest of these pauses."""

MAX_TAKEOVERS: Final = 3
"""Takeovers in a row without a new committed checkpoint or operation before the run ends as a crash loop."""

RETRY_BACKOFF_SECONDS_MAX: Final = 2_592_000.0
RETRY_FACTOR_MAX: Final = 100.0
"""The longest wait between two attempts of a run (30 days), and how much longer each may be than the one before."""

DEADLINE_SECONDS_MAX: Final = 31_536_000.0
"""The longest deadline of a run (365 days)."""

STOP_GRACE_SECONDS: Final = 5.0
"""How long a run past its deadline may go on to its next step before its node is cancelled."""

CALLBACK_SECONDS: Final = 3_600.0
"""How long a callback token is good for, from the start fence and from each report that counts."""

STDERR_TAIL_CHARS: Final = 1_500
"""Of what a child process that failed wrote to its standard error, the end of it is kept."""

SWEEP_SECONDS: Final = 1.0
SWEEP_ROWS_MAX: Final = 64
"""How often a worker looks for runs that are past their deadline or lost, and how many it settles then."""

OBSERVE_SECONDS: Final = 15.0
"""How often a worker counts the open runs for OpenTelemetry."""

SLOTS_MAX: Final = 10_000
"""Most slots of one instance: its tasks' ids are in one row."""

INSTANCE_TTL_SECONDS: Final = 30.0
INSTANCE_REPORTS_PER_TTL: Final = 3
INSTANCE_CHANGES_SECONDS: Final = 1.0
"""How long a report of an instance's capacity counts, how often it is renewed in that time, and how long changes wait
to be reported together."""

INSTANCES_KEPT_HOURS: Final = 24.0
"""How long an instance that reports no more is still listed."""

PRIORITY_MAX: Final = 1_000_000
"""Priorities go from minus this to this; the higher goes first. "Run now" is one more."""

BUS_WAITING_BYTES_MAX: Final = 4_194_304
"""Messages to other processes that wait to be sent, to one of them where each has a connection; more are dropped."""

STREAM_CHUNK_BYTES_MAX: Final = 1_048_576
STREAM_WAITING_CHUNKS_MAX: Final = 1_024
"""The largest chunk of a live stream that is sent, and how many wait for a reader; more are dropped, and counted."""

STREAM_WANTED_SECONDS: Final = 15.0
STREAM_ASKS_PER_WANTED: Final = 3
"""How long a worker sends a run's stream to other processes after somebody asked for it, and how often he repeats it in
that time."""

STREAM_END_SECONDS: Final = 1.0
"""How long a reader waits for the last chunks of a run that he knows to be final."""

EVENTS_PAGE: Final = 256
"""Events that are read at once."""

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
BODIES_CACHED_MAX: Final = 256
KEYS_CACHED_MAX: Final = 4_096
"""Hashed ids and looked-at names that are kept."""
PAGE_ROWS: Final = 256
"""Checkpoints of one page of a listing: three statements (checkpoints, their writes, their content)."""
ERROR_TEXT_CHARS_MAX: Final = 2_000
ERROR_CODE_CHARS_MAX: Final = 100
PROVIDER_ID_CHARS_MAX: Final = 256
EVENT_PAYLOAD_BYTES_MAX: Final = 8_192
SQLITE_VERSION_MIN: Final = (3, 37, 0)
