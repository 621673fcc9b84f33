"""Savers whose listing is broken."""

import functools
import itertools
import threading

from runtime_persist.adapters.workflow.filters import equal
from tests.broken_savers import checks_values
from tests.broken_savers.broken import Broken, caught_by, configured, place, with_values
from tests.saver import test_list

ORDER = test_list.test_order_is_global_over_threads_and_namespaces
FILTERS = test_list.test_filters_are_equality_of_whole_values
two_of_five = functools.partial(test_list.test_a_limit_gives_at_most_so_many, limit=2, count=2)
none_of_five = functools.partial(test_list.test_a_limit_gives_at_most_so_many, limit=0, count=0)


@caught_by(ORDER)
class ListsTheRootOnly(Broken):
    """No namespace in the config means the root."""

    def list(self, config, **options):
        if config:
            config = configured(config, checkpoint_ns=config["configurable"].get("checkpoint_ns", ""))
        return super().list(config, **options)


@caught_by(ORDER)
class ListsOneThread(Broken):
    """No config means the thread of the newest checkpoint."""

    def list(self, config, **options):
        newest = self.listed(None, limit=1) if not config else []
        if newest:
            config = {"configurable": {"thread_id": newest[0].config["configurable"]["thread_id"]}}
        return super().list(config, **options)


@caught_by(ORDER)
class ListsNothingForAnEmptyConfig(Broken):
    def list(self, config, **options):
        return iter(()) if config == {} else super().list(config, **options)


@caught_by(ORDER)
class ListsThreadByThread(Broken):
    """As the saver in memory."""

    def list(self, config, **options):
        yield from sorted(super().list(config, **options), key=lambda found: place(found)[:2])


@caught_by(test_list.test_newest_come_first_with_values_parents_and_writes)
class ListsOldestFirst(Broken):
    def list(self, config, **options):
        yield from list(super().list(config, **options))[::-1]


@caught_by(test_list.test_newest_come_first_with_values_parents_and_writes)
class ListsWithoutWrites(Broken):
    def list(self, config, **options):
        return (found._replace(pending_writes=[]) for found in super().list(config, **options))


@caught_by(test_list.test_newest_come_first_with_values_parents_and_writes)
class ListsWithoutValues(Broken):
    def list(self, config, **options):
        return (with_values(found, {}) for found in super().list(config, **options))


@caught_by(test_list.test_a_checkpoint_id_lists_that_one)
class ListsAllForAnId(Broken):
    def list(self, config, **options):
        return super().list(config and configured(config, checkpoint_id=None), **options)


@caught_by(test_list.test_before_is_strict_and_by_id_alone)
class BeforeIsIncluded(Broken):
    def list(self, config, *, before=None, **options):
        if before:
            before = configured(before, checkpoint_id=place(before)[2] + "\0")
        return super().list(config, before=before, **options)


@caught_by(test_list.test_before_is_strict_and_by_id_alone)
class IgnoresBefore(Broken):
    def list(self, config, *, before=None, **options):
        return super().list(config, **options)


@caught_by(test_list.test_before_is_strict_and_by_id_alone)
class BeforeIsOfItsThread(Broken):
    """As one who joins ``before`` with the checkpoint it names."""

    def list(self, config, *, before=None, **options):
        return iter(()) if before and self.stored(before) is None else super().list(config, before=before, **options)


@caught_by(two_of_five, none_of_five)
class IgnoresTheLimit(Broken):
    def list(self, config, *, limit=None, **options):
        return super().list(config, **options)


@caught_by(none_of_five)
class ALimitOfNoneIsNoLimit(Broken):
    def list(self, config, *, limit=None, **options):
        return super().list(config, limit=limit or None, **options)


@caught_by(test_list.test_a_negative_limit_is_refused)
class ANegativeLimitIsNoLimit(Broken):
    """As SQLite does."""

    def list(self, config, *, limit=None, **options):
        return super().list(config, limit=None if limit is not None and limit < 0 else limit, **options)


@caught_by(checks_values.a_limit_counts_what_matches)
class LimitsBeforeItFilters(Broken):
    def list(self, config, *, filter=None, **options):  # noqa: A002 (LangGraph's name)
        return (
            found
            for found in super().list(config, **options)
            if not filter or filter.items() <= dict(found.metadata).items()
        )


class _Filters(Broken):
    """Lists by a rule of its own."""

    def list(self, config, *, filter=None, limit=None, **options):  # noqa: A002 (LangGraph's name)
        found = super().list(config, **options)
        matching = (one for one in found if all(self.matches(one.metadata, *item) for item in (filter or {}).items()))
        yield from itertools.islice(matching, limit)

    def matches(self, metadata, key, value):
        return key in metadata and equal(metadata[key], value)


@caught_by(FILTERS)
class FiltersByNothing(_Filters):
    def matches(self, metadata, key, value):
        return True


@caught_by(FILTERS)
class FiltersByTheFirstKey(_Filters):
    def list(self, config, *, filter=None, **options):  # noqa: A002 (LangGraph's name)
        return super().list(config, filter=dict(list((filter or {}).items())[:1]), **options)


@caught_by(FILTERS)
class FiltersByParts(_Filters):
    """As PostgreSQL's ``@>``: a part of a dict or a list is enough."""

    def matches(self, metadata, key, value):
        found = metadata.get(key)
        if isinstance(value, dict) and isinstance(found, dict):
            return value.items() <= found.items()
        return super().matches(metadata, key, value)


@caught_by(FILTERS)
class FiltersListsByParts(_Filters):
    def matches(self, metadata, key, value):
        found = metadata.get(key)
        if isinstance(value, list) and isinstance(found, list):
            return all(one in found for one in value)
        return super().matches(metadata, key, value)


@caught_by(FILTERS)
class NoneMatchesWhatIsMissing(_Filters):
    """As the saver in memory."""

    def matches(self, metadata, key, value):
        return metadata.get(key) == value


@caught_by(FILTERS)
class NoneNeverMatches(_Filters):
    """As ``= NULL``."""

    def matches(self, metadata, key, value):
        return value is not None and super().matches(metadata, key, value)


@caught_by(FILTERS)
class BoolsAreNumbers(_Filters):
    def matches(self, metadata, key, value):
        return key in metadata and metadata[key] == value


@caught_by(FILTERS)
class FiltersCompareTexts(_Filters):
    """As one who keeps metadata as texts."""

    def matches(self, metadata, key, value):
        return key in metadata and str(metadata[key]) == str(value)


@caught_by(FILTERS)
class FiltersIgnoreCase(_Filters):
    def matches(self, metadata, key, value):
        found = metadata.get(key)
        if isinstance(value, str) and isinstance(found, str):
            return value.lower() == found.lower()
        return super().matches(metadata, key, value)


@caught_by(FILTERS)
class DictsInTheirOrder(_Filters):
    """As one who compares what the dicts look like written down."""

    def matches(self, metadata, key, value):
        return super().matches(metadata, key, value) and list(value if isinstance(value, dict) else ()) == list(
            metadata[key] if isinstance(metadata[key], dict) else ()
        )


@caught_by(FILTERS)
class DotsArePaths(_Filters):
    """As SQLite's ``json_extract``."""

    def matches(self, metadata, key, value):
        found = metadata
        for part in key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return equal(found, value)


@caught_by(FILTERS, shows=ValueError)
class OddKeysAreErrors(_Filters):
    def matches(self, metadata, key, value):
        if not key.replace(".", "").isalnum():
            msg = f"invalid key {key!r}"
            raise ValueError(msg)
        return super().matches(metadata, key, value)


@caught_by(test_list.test_pages_join_without_gaps_or_repeats)
class PagesOverlap(Broken):
    """The last of a page comes again as the first of the next one."""

    def list(self, config, **options):
        for number, found in enumerate(super().list(config, **options)):
            yield found
            if number % 2:
                yield found


@caught_by(test_list.test_equal_ids_of_several_threads_are_all_listed)
class GoesOnBehindAnId(Broken):
    """Pages by id alone: of equal ones in several threads the rest is left out."""

    def list(self, config, **options):
        seen = set()
        for found in super().list(config, **options):
            if place(found)[2] not in seen:
                yield found
            seen.add(place(found)[2])


@caught_by(test_list.test_the_saver_may_be_called_while_a_listing_is_open, shows=TimeoutError)
class HoldsALockWhileItLists(Broken):
    """As the stock savers, which wait forever where this one tells."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.lock = threading.Lock()

    def take(self):
        if not self.lock.acquire(blocking=False):
            msg = "a listing holds the lock"
            raise TimeoutError(msg)

    def list(self, config, **options):
        self.take()
        try:
            yield from super().list(config, **options)
        finally:
            self.lock.release()

    def get_tuple(self, config):
        self.take()
        try:
            return super().get_tuple(config)
        finally:
            self.lock.release()


@caught_by(test_list.test_an_iterator_may_be_abandoned, shows=TimeoutError)
class KeepsALockOfAnAbandonedListing(HoldsALockWhileItLists):
    def list(self, config, **options):
        self.take()
        yield from Broken.list(self, config, **options)
        self.lock.release()
