"""The versioned form of a view, and blobs of every version ever written."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from sds_core.observer import blob
from sds_core.observer.kinds import AnyKind
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.channel_view import ChannelView
from tests.support.channel import Channel, assert_identities
from tests.support.frames import START_MS
from tests.support.golden.blobs import KINDS, made, totals_of

GOLDEN = Path(__file__).parents[2] / "golden" / "blobs"
BLOBS = sorted(GOLDEN.glob("v*/*.bin"))


class Totals(msgspec.Struct, array_like=True):
    """Totals of an older release, with one field less."""

    first: int = 0


class NewTotals(msgspec.Struct, array_like=True):
    """The same with a field added at the end."""

    first: int = 0
    second: int = 7


def test_blob_begins_with_the_length_of_the_totals() -> None:
    """Four bytes, big-endian; then the totals alone can be read."""
    data = blob.pack(Totals(5), NewTotals(1, 2))
    length = int.from_bytes(data[: blob.LENGTH_BYTES], "big")
    assert msgspec.msgpack.decode(data[4 : 4 + length], type=Totals) == Totals(5)
    assert blob.unpack(blob.verified(data), Totals, NewTotals) == (
        Totals(5),
        NewTotals(1, 2),
    )


def test_fields_added_later_take_their_default() -> None:
    """So that a blob of an older release can be read."""
    data = blob.verified(blob.pack(Totals(5), Totals(6)))
    assert blob.unpack(data, NewTotals, NewTotals) == (
        NewTotals(5, 7),
        NewTotals(6, 7),
    )


def test_blob_of_a_newer_version_is_refused() -> None:
    """With the version in the error and in its message."""
    blob.check_version(5, newest=5)
    with pytest.raises(
        blob.UnknownBlobVersion,
        match="version 6, but this release reads only versions up to 5",
    ) as caught:
        blob.check_version(6, newest=5)
    assert (caught.value.version, caught.value.newest) == (6, 5)


@pytest.mark.parametrize("kind", [*kinds_of(PROTOCOLS)], ids=lambda kind: kind.prefix)
def test_every_view_refuses_a_newer_version(kind: AnyKind) -> None:
    """Each kind by its own blob version."""
    data = kind.view().to_blob()
    with pytest.raises(blob.UnknownBlobVersion) as caught:
        kind.view.from_blob(kind.blob_version + 1, data)
    assert caught.value.newest == kind.blob_version


@pytest.mark.parametrize("kind", [*kinds_of(PROTOCOLS)], ids=lambda kind: kind.prefix)
def test_new_view_round_trips(kind: AnyKind) -> None:
    """An empty view is the same after its blob."""
    data = kind.view().to_blob()
    again = kind.view.from_blob(kind.blob_version, data)
    assert again.totals == kind.view().totals == kind.totals()
    assert again.to_blob() == data


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", sorted(made()))
def test_blob_with_a_changed_bit_is_refused(name: str) -> None:
    """Any single bit, also of the checksum."""
    kind = KINDS[name.partition(".")[0]]
    data = made()[name].to_blob()
    for bit in range(8 * len(data)):
        with pytest.raises(
            blob.DamagedBlob, match="does not match its stored checksum"
        ):
            kind.view.from_blob(kind.blob_version, flipped(data, bit))


@pytest.mark.parametrize("name", sorted(made()))
def test_blob_that_is_cut_or_continued_is_refused(name: str) -> None:
    """After any byte, and down to nothing."""
    kind = KINDS[name.partition(".")[0]]
    data = made()[name].to_blob()
    for wrong in [*(data[:end] for end in range(len(data))), data + b"\0", data + data]:
        with pytest.raises(blob.DamagedBlob):
            kind.view.from_blob(kind.blob_version, wrong)


@pytest.mark.parametrize("name", sorted(made()))
def test_blob_under_the_version_of_another_is_refused(name: str) -> None:
    """The checksum is no part of older versions."""
    kind = KINDS[name.partition(".")[0]]
    for version in range(1, kind.checksum_since):
        with pytest.raises(blob.DamagedBlob):
            kind.view.from_blob(version, made()[name].to_blob())


@pytest.mark.parametrize("path", BLOBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_changed_blob_of_an_older_version_raises_no_other_error(path: Path) -> None:
    """It has no checksum, so some changes are found only if they cannot be decoded."""
    kind = KINDS[path.name.partition(".")[0]]
    version, data = int(path.parent.name[1:]), path.read_bytes()
    for bit in range(0, 8 * len(data), 7):
        with suppress(blob.DamagedBlob):
            kind.view.from_blob(version, flipped(data, bit))
    for end in range(0, len(data), 5):
        with suppress(blob.DamagedBlob):
            kind.view.from_blob(version, data[:end])


def test_packing_changes_nothing() -> None:
    """A view that was packed goes on as one that was not."""
    view = ChannelView()
    view.apply([], START_MS)
    assert view.to_blob() == view.to_blob()
    assert view.totals.clock_ms == START_MS


# Golden blobs: tests.support.golden.blobs writes those of a new version or case.


def test_golden_blobs_exist_for_every_version() -> None:
    """Every version up to this one can be read, and is tested."""
    for name, kind in KINDS.items():
        blobs = [path for path in BLOBS if path.name.startswith(f"{name}.")]
        versions = {int(path.parent.name[1:]) for path in blobs}
        assert versions == set(range(1, kind.blob_version + 1))


@pytest.mark.parametrize("path", BLOBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden_blob_has_its_totals(path: Path) -> None:
    """All figures that the release knew that wrote it; newer ones are at default."""
    expected = json.loads(path.with_suffix(".json").read_text())
    view_type = KINDS[path.name.partition(".")[0]].view
    view = view_type.from_blob(int(path.parent.name[1:]), path.read_bytes())
    # Through JSON, which knows no tuples.
    totals = json.loads(json.dumps(totals_of(view)))
    for name in ("evidence", "suspects"):
        if expected.get(name) is not None:
            # Its fields have no names: those that were added since come last.
            totals[name] = totals[name][: len(expected[name])]
    assert {name: totals[name] for name in expected} == expected
    for name, default in totals_of(view_type()).items():
        if name not in expected:
            assert totals[name] == default, name


@pytest.mark.parametrize("path", BLOBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden_blob_can_be_primed_from_its_totals(path: Path) -> None:
    """The totals are read without decoding the view."""
    kind = KINDS[path.name.partition(".")[0]]
    data = path.read_bytes()
    totals = blob.unpack_totals(blob.totals_part(data), kind.totals)
    version = int(path.parent.name[1:])
    assert totals == kind.view.from_blob(version, data).totals


@pytest.mark.parametrize("path", BLOBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_view_from_a_golden_blob_goes_on(path: Path) -> None:
    """Whatever its release had pending ends, and the figures still add up."""
    view = KINDS[path.name.partition(".")[0]].view.from_blob(
        int(path.parent.name[1:]), path.read_bytes()
    )
    for _ in range(100):
        if view.next_deadline_ms is None:
            break
        view.apply([], view.next_deadline_ms + 1)
    assert view.next_deadline_ms is None
    if isinstance(view, ChannelView):
        assert_identities(view.totals)
        assert (view.totals.in_flight, view.totals.gaps_open) == (0, 0)


@pytest.mark.parametrize("name", sorted(made()))
def test_packed_view_goes_on_as_one_never_packed(name: str) -> None:
    """What the blob keeps is all that the future depends on."""
    fresh = made()[name]
    kind = KINDS[name.partition(".")[0]]
    packed = kind.view.from_blob(kind.blob_version, fresh.to_blob())
    for _ in range(100):
        assert packed.next_deadline_ms == fresh.next_deadline_ms
        if fresh.next_deadline_ms is None:
            break
        clock_ms = fresh.next_deadline_ms + 1
        packed.apply([], clock_ms)
        fresh.apply([], clock_ms)
        assert packed.totals == fresh.totals
    assert packed.next_deadline_ms is None


def test_state_of_every_part_survives_its_blob() -> None:
    """Evidence given before and after packing adds up: witnesses, mentions, L0."""
    # The driver packs and unpacks between any two calls and compares.
    channel = Channel.after_warm_up()
    channel.content("anchor", "anna", at=60_000, lamport=101)
    channel.sync("bob", at=61_000, history=["anchor", "x"], requests=["x", "y"])
    channel.sync("carol", at=62_000, history=["x"], holds=["anchor"])
    channel.content("x", "sue", at=65_000, observer="tap", seq=4, waku_hash="1")
    channel.content("x", "sue", at=66_000, observer="tap", seq=5, waku_hash="2")
    channel.rest()
    totals = channel.totals
    assert totals.gaps_repaired == 1
    assert (totals.repair_answered, totals.repair_redundant) == (1, 1)
    assert totals.repair_expired == 1
    assert totals.acknowledged_definite == 2
