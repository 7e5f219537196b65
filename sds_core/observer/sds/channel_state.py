"""State of a channel's view between batches, and versions of its encoded form."""

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
"""Version of `ChannelView.to_blob`; every version from 1 on can be read.

Version 3 adds a field at the end of the state. A release that writes version 2 must
refuse version 3, because ignoring the field would lose minutes. Version 4 adds the
checksum. Version 5 has tables of messages, gaps and requests. Version 6 has segments,
and stores no bytes for absent ids, hashes and witnesses. Version 7 has sync frames,
bounds of the forgotten messages, and the filters of the warm-up.
"""

CHECKSUM_SINCE = 4
"""First version whose blobs have a checksum."""


class ChannelState(msgspec.Struct, array_like=True):
    """State of the view between two batches, without its totals.

    Stored by position: add fields only at the end and with a default, and never change
    the order.
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
    # Clock at the latest record; None in a state from before 0.8.0.
    heard_ms: int | None = None
    segments: SegmentsState = msgspec.field(default_factory=SegmentsState)
    seen_ids: PackedTable = msgspec.field(default_factory=PackedTable)
    forgotten: ForgottenState = msgspec.field(default_factory=ForgottenState)
    start_filters: list[StartFilter] = []
