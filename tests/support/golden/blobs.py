"""Writes the golden blobs of this version.

``python -m tests.support.golden.blobs`` runs it.

A blob once written is never changed: an older release's checkpoints hold the like.
So only what is not there yet is written; ``--rewrite`` is for a version that no
release has written so far.
"""

from __future__ import annotations

import argparse
import json
from array import array
from pathlib import Path
from typing import Any

import msgspec

from sds_core.observer.dead_letter_view import (
    DEAD_LETTERS,
    DeadLetter,
    DeadLetterDigest,
    DeadLetterView,
)
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.shard_view import ShardView
from sds_core.observer.mvds.split import PayloadPart, split
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapDigest, TapView
from sds_core.wire import Dialect
from tests.support.channel import digest_of
from tests.support.frames import (
    START_MS,
    FrameFactory,
    Record,
    bloom,
    running_clocks,
)
from tests.support.mvds.traffic import Monitor, sent
from tests.support.written_segments import nim_segments

BLOBS = Path(__file__).parents[2] / "golden" / "blobs"

KINDS: dict[str, Any] = {
    "channel": CHANNELS,
    "tap": TAPS,
    "dead_letters": DEAD_LETTERS,
    "mvds": SHARD_VIEWS,
}
"""Kind of view by the first part of a blob's name."""


def made() -> dict[str, Any]:
    """Return the views that have golden blobs, by name."""
    return {
        "channel.new": ChannelView(),
        "channel.busy": _busy_channel(),
        "channel.nim": _nim_channel(),
        "tap.holes": _tap(),
        "dead_letters.two": _dead_letters(),
        "mvds.busy": _mvds(),
    }


def _channel(records: list[Record], clock_ms: int) -> ChannelView:
    view = ChannelView()
    clocked = zip(records, running_clocks(records), strict=True)
    view.apply([digest_of(clocked)], START_MS + clock_ms)
    return view


def _busy_channel() -> ChannelView:
    """Return a view with every kind of event, many of them still open."""
    frames = FrameFactory("golden")
    repaired = frames.content("repaired", "sue", 104)
    records = [
        Record(0, frames.sync("", 100), "west", 1, 11),
        Record(40_000, frames.content("anchor", "anna", 101), "west", 2, 12),
        Record(40_100, frames.content("anchor", "anna", 101), "east", 1, 12),
        Record(
            41_000,
            frames.sync(
                "bob",
                102,
                history=["anchor", ("lost", "bob"), ("repaired", "sue"), "late"],
                requests=["repaired", "open"],
                holds=["anchor"],
            ),
            "west",
            3,
            13,
        ),
        Record(46_000, repaired, "west", 4, 14),
        Record(50_000, repaired, "west", 5, 15),
        Record(51_000, frames.content("late", "sue", 105), "west", 6, 16),
        Record(345_000, frames.content("seen", "anna", 106), "west", 7, 17),
        Record(346_000, frames.sync("bob", 107, holds=["seen"]), "west", 8, 18),
        Record(347_000, frames.sync("carol", 107, holds=["seen"]), "west", 30, 30),
        Record(350_000, frames.content("in flight", "anna", 108), "west", 9, 19),
        Record(
            351_000,
            frames.sync("bob", 109, history=["seen", "missing"], requests=["missing"]),
            "west",
            10,
            20,
        ),
        Record(352_000, frames.content("anchor", "bob", 101), "west", 11, 21),
        Record(353_000, frames.ephemeral("zoe"), "west", 12, 22),
    ]
    records += _deliveries(frames) + _segments(frames)
    return _channel(sorted(records, key=lambda record: record.at), 355_000)


def _deliveries(frames: FrameFactory) -> list[Record]:
    """To gus and hal: at once, late, not at all, and one that is still missing.

    Their filters grow; that of ida is saturated, and rolls over.
    """
    full, rolled = bloom(bits_set=95_000), bloom(bits_set=94_900)
    sent = [
        (51_000, frames.sync("gus", 1, holds=())),
        (51_100, frames.sync("hal", 1, holds=())),
        (51_200, frames.sync("ida", 1, filter_=full)),
        (52_000, frames.content("undelivered", "anna", 2)),
        (53_000, frames.content("recovered", "anna", 3)),
        (54_000, frames.sync("hal", 4, history=["recovered"], holds=["recovered"])),
        (60_000, frames.sync("gus", 5, holds=())),
        (70_000, frames.sync("gus", 6, holds=["recovered"])),
        (180_000, frames.content("unheard", "anna", 7)),
        (190_000, frames.sync("ida", 8, filter_=rolled)),
        (200_000, frames.sync("hal", 9, holds=["recovered", "undelivered"])),
        (354_000, frames.sync("gus", 10, holds=["recovered"])),
    ]
    return [
        Record(at, frame, "west", seq, 20 + seq)
        for seq, (at, frame) in enumerate(sent, 13)
    ]


def _segments(frames: FrameFactory) -> list[Record]:
    """Of a complete message, of one that is not, and one that contradicts it."""
    texts = nim_segments(1, 1, 1) + nim_segments(2, 3)[:1] + nim_segments(2, 4)[1:2]
    return [
        Record(
            354_500 + number,
            frames.content(f"segment-{number}", "anna", 110 + number, text=text),
            "west",
            25 + number,
            45 + number,
        )
        for number, text in enumerate(texts)
    ]


def _nim_channel() -> ChannelView:
    """Return a view of the other dialect, without tap headers, in its settle time."""
    frames = FrameFactory("golden", Dialect.NIM)
    records = [
        Record(0, frames.sync("nia", 5)),
        Record(31_000, frames.content("anchor", "nia", 6)),
        Record(
            32_000,
            frames.sync(
                "noa", 7, history=["anchor", "x"], requests=["x"], holds=["anchor"]
            ),
        ),
    ]
    return _channel(records, 33_000)


def _tap() -> TapView:
    """Return a tap with two counted holes, an open one and an early record."""
    records = (
        (0, 1), (1_000, 5), (20_000, 6), (30_000, 7), (50_000, 8), (60_000, 11),
        (95_000, 12),
    )  # fmt: skip
    times = array("q", [START_MS + at for at, _ in records])
    seqs = array("q", [seq for _, seq in records])
    beat = array("q", [START_MS + 58_000]).tobytes(), array("q", [8]).tobytes()
    view = TapView()
    view.apply([TapDigest(times.tobytes(), seqs.tobytes(), *beat)], START_MS + 70_000)
    return view


def _dead_letters() -> DeadLetterView:
    view = DeadLetterView()
    letters = [DeadLetter(3, 8, "protobuf_error"), DeadLetter(3, 9, "no_channel")]
    view.apply([DeadLetterDigest(letters)], START_MS)
    return view


def _mvds() -> ShardView:
    """Return a view with two groups, ids that wait for theirs, and an incident."""
    shard = min(split(sent(0, "anna", "bob", messages=[1]).frame), key=_has_no_record)
    monitor = Monitor()
    numbers = range(1, 40)
    records = [
        sent(0, "anna", "bob", messages=numbers, observer="west", seq=1),
        sent(1, "anna", "bob", messages=numbers, observer="east", seq=1),
        sent(2, "anna", "carol", messages=numbers, group=bytes(32)),
        sent(500, "bob", "anna", acks=range(2, 40), requests=range(40, 80)),
        sent(600, "bob", "carol", offers=range(1, 120)),
        sent(6_000, "carol", "anna"),
        sent(7_000, "bob", "anna", observer="west", seq=2),
    ]
    monitor.batch(records, 130_000)
    again = sent(131_000, "anna", "carol", messages=range(200, 240), offers=numbers)
    monitor.batch([again], 131_500)
    return monitor.views[shard[0]]


def _has_no_record(part: tuple[str, PayloadPart]) -> bool:
    return not part[1].records


def totals_of(view: Any) -> dict[str, Any]:
    """Return the totals by name, as JSON values."""
    names = [field.name for field in msgspec.structs.fields(view.totals)]
    # Through MessagePack, which opens what is packed by itself.
    packed = msgspec.msgpack.encode(view.totals)
    values = msgspec.to_builtins(msgspec.msgpack.decode(packed))
    return dict(zip(names, values, strict=True))


def main() -> None:
    """Write missing blobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rewrite", action="store_true", help="also what is there")
    rewrite = parser.parse_args().rewrite
    for name, view in made().items():
        kind = KINDS[name.partition(".")[0]]
        folder = BLOBS / f"v{kind.blob_version}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.bin"
        if path.exists() and not rewrite:
            continue
        path.write_bytes(view.to_blob())
        totals = json.dumps(totals_of(view), indent=1, sort_keys=True)
        (folder / f"{name}.json").write_text(totals + "\n")


if __name__ == "__main__":
    main()
