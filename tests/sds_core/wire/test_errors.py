"""Errors carry their values, their reason and a message for a person."""

from __future__ import annotations

import pickle

import pytest

from sds_core.wire import (
    BloomBadHeader,
    BloomError,
    BloomWrongLength,
    EmptyValue,
    MalformedProtobuf,
    NeitherLamportNorContent,
    NoChannel,
    NoMessageId,
    Reason,
    UndecodableFrame,
    ValueTooLarge,
    WireError,
    errors,
)

MESSAGES = [
    (EmptyValue(), "the value is empty"),
    (ValueTooLarge(9, 8), "the value has 9 bytes, a frame at most 8"),
    (MalformedProtobuf("corrupt", 5), "5 bytes are no SDS message: corrupt"),
    (NoMessageId("nim"), "a message in dialect nim has no message id"),
    (
        NeitherLamportNorContent("spec", "m"),
        "message 'm' in dialect spec has neither lamport timestamp nor content",
    ),
    (NoChannel("spec", "a\nb"), r"message 'a\nb' in dialect spec names no channel"),
    (BloomWrongLength(18752, 3), "a bloom filter has 3 bytes instead of 18752"),
    (
        BloomBadHeader("k is 0", 3),
        "the header of a bloom filter of 3 bytes is unusable: k is 0",
    ),
]


@pytest.mark.parametrize(("error", "message"), MESSAGES)
def test_message_repeats_the_values(error: WireError, message: str) -> None:
    """In one line."""
    assert str(error) == message


@pytest.mark.parametrize("error", [error for error, _ in MESSAGES])
def test_error_can_be_pickled(error: WireError) -> None:
    """A worker's error is the same in the driver."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


def test_long_ids_are_cut_in_the_message_only() -> None:
    """An id of a megabyte must not fill the log."""
    error = NoChannel("spec", "x" * 1_000_000)
    assert len(str(error)) < 200
    assert error.message_id == "x" * 1_000_000


def test_reasons_are_the_documented_ones() -> None:
    """The closed list of header dead-letter-reason in docs/records.md."""
    assert list(Reason) == [
        "empty_value",
        "too_large",
        "protobuf_error",
        "no_message_id",
        "neither_lamport_nor_content",
        "no_channel",
        "channel_mismatch",
        "future_timestamp",
        "bad_header",
        "mvds_error",
        "name_too_long",
    ]


def test_each_class_of_undecodable_frame_has_a_reason_of_its_own() -> None:
    """So reasons and classes can be counted alike."""
    # Other protocols have classes of their own.
    reasons = [
        cls.reason
        for cls in UndecodableFrame.__subclasses__()
        if cls.__module__ == errors.__name__
    ]
    assert reasons == [*list(Reason)[:6], Reason.NAME_TOO_LONG]


def test_unusable_filter_is_no_undecodable_frame() -> None:
    """A frame with a broken filter counts as a frame."""
    assert not issubclass(BloomError, UndecodableFrame)
    assert issubclass(BloomError, WireError)
