"""RetryPolicy: waits and refusals. Texts of errors without secrets."""

import pytest

from runtime_persist import RetryPolicy
from runtime_persist.errors import InvalidInput
from runtime_persist.model.retry import NO_RETRY
from runtime_persist.model.text import redacted


def test_waits_grow_by_the_factor_up_to_the_longest():
    policy = RetryPolicy(backoff=1, factor=3, backoff_max=20, jitter=0)
    assert [policy.delay_us(n, 0.5) for n in range(1, 6)] == [1_000_000, 3_000_000, 9_000_000, 20_000_000, 20_000_000]
    assert policy.delay_us(10**9, 0.5) == 20_000_000


def test_jitter_takes_off_or_adds_its_share_but_never_exceeds_the_longest():
    policy = RetryPolicy(backoff=10, jitter=0.2, backoff_max=11)
    assert [policy.delay_us(1, chance) for chance in (0.0, 0.5, 1.0)] == [8_000_000, 10_000_000, 11_000_000]


def test_it_comes_back_as_it_was_stored_and_none_means_once():
    policy = RetryPolicy(max_attempts=7, backoff=0.5, max_takeovers=100)
    assert RetryPolicy.decoded(policy.encoded()) == policy
    assert RetryPolicy.decoded(None) == NO_RETRY
    assert NO_RETRY.max_attempts == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"max_attempts": 0}, {"max_attempts": 1.5}, {"backoff": -1}, {"backoff": float("nan")}, {"factor": 0.5},
        {"backoff_max": float("inf")}, {"jitter": 2}, {"max_takeovers": -1},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_name(fields):
    with pytest.raises(InvalidInput, match=next(iter(fields))):
        RetryPolicy(**fields)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("api_key=sk-123 refused", "api_key=… refused"),
        ("{'password': 'hunter2', 'n': 1}", "{'password': '…', 'n': 1}"),
        ("Authorization: Bearer abc.def", "Authorization: …"),
        ("sent bearer abcdefghij", "sent bearer …"),
        ("postgresql://me:secret@host/db is away", "postgresql://me:…@host/db is away"),
        ("no luck with key figures", "no luck with key figures"),
    ],
)
def test_an_errors_text_is_stored_without_what_stands_behind_the_name_of_a_secret(said, kept):
    assert redacted(said) == kept


@pytest.mark.parametrize("text", ["x" * 1_000_000, "key" * 200_000, "://" * 200_000, "key" + " " * 1_000_000])
def test_a_long_text_is_looked_at_once(text):
    """A pattern that began anew at each place of it would not end."""
    assert redacted(text) == text
