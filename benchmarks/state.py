"""Measures how many bytes one channel takes in the state store.

    python -m benchmarks.state --help
    python -m benchmarks.state --publish

Simulated traffic of one channel goes through its view in batches of a minute; after
each batch the view is packed as the job packs it. With `--full`, other traffic fills
every memory to its limit: messages that nobody acknowledges, each of which names a
message that never arrives and requests the repair of another.

Limits of the result: sizes are measured before the store compresses the data. The
simulation's message ids have 64 hex digits; longer ids take more space.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import click
import msgspec

from benchmarks.data import as_read
from benchmarks.measured import store
from connectors.simulator.records import simulated_records
from sds_core.observer import blob
from sds_core.observer.record import RawRecord
from sds_core.observer.sds.channel_state import BLOB_VERSION, ChannelState
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.settings import DEFAULTS
from sds_core.planning.measured import State
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from sds_core.wire import Dialect, Frame, HistoryEntry, encode
from streaming.chunk import Chunk

_START_MS = 1_760_000_000_000
_MINUTE_MS = 60_000
_DAY_S = 86_400
_PUBLISHED = (5, 20, 100)
"""Participants of the channels whose states `plan size` is fitted to."""


def simulated(
    profile: str, participants: int, messages_a_day: int, hours: float
) -> Iterator[RawRecord]:
    """Return the records of one channel and the heartbeats of its tap."""
    scenario = Scenario.from_mapping(
        {
            "name": "state",
            "description": "size of the state",
            "duration_s": hours * 3600,
            "participants": participants,
            "channels": [
                {
                    "name": "channel",
                    "participants": participants,
                    "traffic": {"mean_interval_s": _DAY_S / messages_a_day},
                }
            ],
            "profiles": [{"base": profile}],
            "network": {"loss": 0.01},
            "taps": [{"name": "tap"}],
        }
    )
    return as_read(simulated_records(scenario, 1, _START_MS, 1, Truth("state", 1)))


def filling() -> Iterator[RawRecord]:
    """Yield records that fill every memory within the horizon."""
    for number in range(DEFAULTS.remembered):
        at_ms = _START_MS + 2 * DEFAULTS.warm_up_ms + number * 150
        missing, requested = (
            HistoryEntry(_id(f"{kind} {number}")) for kind in ("a", "b")
        )
        history = [missing] if not number else [HistoryEntry(_id("0")), missing]
        frame = Frame.build(
            Dialect.SPEC,
            message_id=_id(str(number)),
            channel_id="channel",
            sender_id=f"participant-{number % 20:03d}",
            lamport=at_ms,
            causal_history=history,
            repair_request=[requested],
            content=b"text",
        )
        headers = [
            ("observer", b"tap"),
            ("seq", str(number).encode()),
            ("waku-hash", b"0x" + _id(f"hash {number}").encode()),
        ]
        # Only the first record is in the warm-up.
        time_ms = at_ms if number else _START_MS
        yield RawRecord(0, number, time_ms, None, encode(frame), headers)


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@click.command(help=__doc__)
@click.option("--full", is_flag=True, help="Fill every memory to its limit.")
@click.option(
    "--profile", type=click.Choice(["spec", "js_sds", "nim_sds"]), default="spec"
)
@click.option("--participants", default=20)
@click.option("--messages-a-day", default=10_000)
@click.option("--hours", default=2.0, help="Virtual hours; the horizon is one.")
@click.option("--publish", is_flag=True, help="Write the states of `plan size`.")
def main(
    full: bool,
    profile: str,
    participants: int,
    messages_a_day: int,
    hours: float,
    publish: bool,
) -> None:
    """Feed a view and print sizes of its blob."""
    if publish:
        store("states", [_state(count, messages_a_day) for count in _PUBLISHED])
        return
    records = (
        filling() if full else simulated(profile, participants, messages_a_day, hours)
    )
    frames, sizes, view = _fed(records)
    click.echo(f"{frames} records, {view.totals.messages} messages")
    click.echo(f"  blob: {max(sizes)} B at most, {sizes[-1]} B at the end")
    click.echo(f"  evicted by the limit: {view.totals.remembered_evicted}")
    state = msgspec.msgpack.decode(blob.split(blob.verified(view.to_blob()))[1])
    for name, part in zip(ChannelState.__struct_fields__, state, strict=True):
        click.echo(f"    {name}: {len(msgspec.msgpack.encode(part))} B")


def _state(participants: int, messages_a_day: int) -> State:
    """Measure one channel with the default options, for `plan size`."""
    records = simulated("spec", participants, messages_a_day, 2.0)
    _, sizes, _ = _fed(records)
    return State(participants, messages_a_day, max(sizes))


def _fed(records: Iterator[RawRecord]) -> tuple[int, list[int], ChannelView]:
    """Feed a view; return records, sizes of its state after each batch, and it."""
    view, chunk, sizes, frames = ChannelView(), Chunk(0, 0), [], 0
    batch_ms = _START_MS
    for record in records:
        if record.timestamp_ms - batch_ms >= _MINUTE_MS:
            batch_ms = record.timestamp_ms
            view = _apply(view, chunk, batch_ms)
            sizes.append(len(view.to_blob()))
        chunk.add(record, 1 << 62)
        frames += 1
    view = _apply(view, chunk, batch_ms + _MINUTE_MS)
    sizes.append(len(view.to_blob()))
    return frames, sizes, view


def _apply(view: ChannelView, chunk: Chunk, clock_ms: int) -> ChannelView:
    """Apply the chunk; return the view as restored from its blob."""
    digests = [
        msgspec.msgpack.decode(row.digest, type=ChannelDigest)
        for row in chunk.take_rows()
        if row.key.startswith(CHANNELS.key(""))
    ]
    view.apply(digests, clock_ms)
    return ChannelView.from_blob(BLOB_VERSION, view.to_blob())


if __name__ == "__main__":
    main()
