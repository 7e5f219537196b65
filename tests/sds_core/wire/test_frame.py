"""Frames as values."""

from __future__ import annotations

import pickle

import pytest

from sds_core.wire import (
    Dialect,
    Frame,
    FrameKind,
    HistoryEntry,
    NeitherLamportNorContent,
    decode,
    encode,
)


@pytest.fixture
def frame() -> Frame:
    """A frame with both kinds of entries, made by hand."""
    return Frame.build(
        Dialect.SPEC,
        message_id="m",
        channel_id="ch",
        lamport=7,
        causal_history=(HistoryEntry("a", b"hint", "s"), HistoryEntry("b")),
        repair_request=(HistoryEntry("c"),),
        content=b"x",
    )


def test_values_of_the_enums_are_those_of_the_metrics() -> None:
    """The labels `dialect` and `kind` of sds_frames_total take these values."""
    assert list(Dialect) == ["spec", "nim"]
    assert list(FrameKind) == ["content", "sync", "ephemeral"]


def test_decoded_frame_equals_one_made_by_hand(frame: Frame) -> None:
    """Equality looks at the entries, not at what holds them."""
    decoded = decode(encode(frame))
    assert type(decoded.causal_history) is not type(frame.causal_history)
    assert decoded == frame
    assert frame == decoded
    assert (decoded != frame) is False
    assert hash(decoded) == hash(frame)


def test_frames_that_differ_in_an_entry_are_unequal(frame: Frame) -> None:
    """A missing hint makes another frame, in both directions of `==`."""
    decoded = decode(encode(frame))
    other = frame._replace(
        causal_history=(HistoryEntry("a", b"", "s"), HistoryEntry("b"))
    )
    assert decoded != other
    assert other != decoded
    assert frame != other


def test_frame_does_not_equal_a_bare_tuple(frame: Frame) -> None:
    """Although it is a tuple internally."""
    assert frame != (*frame,)


def test_detached_frame_can_be_pickled(frame: Frame) -> None:
    """So it can be sent to another process."""
    detached = decode(encode(frame)).detached()
    assert detached.causal_history == frame.causal_history
    assert type(detached.causal_history) is tuple
    assert pickle.loads(pickle.dumps(detached)) == frame  # noqa: S301 - our own bytes


def test_entries_of_a_decoded_frame_read_as_built_ones(frame: Frame) -> None:
    """Readers need not know where they come from."""
    first = decode(encode(frame)).causal_history[0]
    assert (first.message_id, first.retrieval_hint, first.sender_id) == (
        "a",
        b"hint",
        "s",
    )


def test_frame_of_no_kind_cannot_be_built() -> None:
    """One with neither Lamport timestamp nor content is refused."""
    with pytest.raises(NeitherLamportNorContent):
        Frame.build(Dialect.NIM, message_id="m", channel_id="ch")
