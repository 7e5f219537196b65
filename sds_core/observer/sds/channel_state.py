"""The state that a channel's view keeps between batches, and its encoded versions."""

from __future__ import annotations

import msgspec

from sds_core.observer.minutes import MinutesState
from sds_core.observer.sds.capacity import EpochState
from sds_core.observer.sds.copies import CopiesState
from sds_core.observer.sds.deliveries import DeliveriesState
from sds_core.observer.sds.filters import FilterTrace
from sds_core.observer.sds.forgotten_messages import ForgottenState
from sds_core.observer.sds.health import HealthState
from sds_core.observer.sds.history_heads import HistoryHead
from sds_core.observer.sds.participants import Participant
from sds_core.observer.sds.segments import SegmentsState
from sds_core.observer.sds.start_filters import StartFilter
from sds_core.observer.table import PackedTable
from sds_core.wire import Dialect

BLOB_VERSION = 7
"""Version of the blobs that `ChannelView.to_blob` returns; all versions
from 1 on can be decoded.

Version 3 adds a field at the end of the state. This change needs a new version, because
an older release would ignore the field and lose per-minute aggregates. Version 4 adds
the checksum. Version 5 stores messages, gaps and requests as tables. Version 6 adds
segments, and stores no bytes for absent ids, hashes and witnesses. Version 7 adds the
ids of sync frames, the newest time and the highest Lamport timestamps of forgotten
messages, and the filters of the warm-up.
"""

CHECKSUM_SINCE = 4
"""The first blob version that has a checksum."""


class ChannelState(msgspec.Struct, array_like=True):
    """The state that a channel's view keeps between batches, except its totals.

    Fields are stored by position: never change their order, and add fields only at the
    end, with a default.
    """

    clock_ms: int = 0
    swept_ms: int = 0
    highest_lamports: dict[Dialect, int] = {}
    participants: list[Participant] = []
    copies: CopiesState = msgspec.field(default_factory=CopiesState)
    messages: PackedTable = msgspec.field(default_factory=PackedTable)
    gaps: PackedTable = msgspec.field(default_factory=PackedTable)
    requests: PackedTable = msgspec.field(default_factory=PackedTable)
    health: HealthState = msgspec.field(default_factory=HealthState)
    deliveries: DeliveriesState = msgspec.field(default_factory=DeliveriesState)
    filters: dict[int, FilterTrace] = {}
    epoch: EpochState = msgspec.field(default_factory=EpochState)
    minutes: MinutesState = msgspec.field(default_factory=MinutesState)
    heads: dict[int, HistoryHead] = {}
    # Clock at the channel's latest record; None before the first record, and in a state
    # that a release before 0.8.0 wrote.
    heard_ms: int | None = None
    segments: SegmentsState = msgspec.field(default_factory=SegmentsState)
    seen_ids: PackedTable = msgspec.field(default_factory=PackedTable)
    forgotten: ForgottenState = msgspec.field(default_factory=ForgottenState)
    start_filters: list[StartFilter] = []
