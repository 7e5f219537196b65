"""Defines the protocol SDS for the monitor, and the kind of its views."""

from __future__ import annotations

from operator import attrgetter

from sds_core.observer.forgotten import Forgotten
from sds_core.observer.incidents import Incident, IncidentKind
from sds_core.observer.kinds import Kind, Outlet, TrafficProtocol
from sds_core.observer.record import DEFAULT_PROTOCOL, Headers
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.causes import causes_of
from sds_core.observer.sds.channel_state import BLOB_VERSION, CHECKSUM_SINCE
from sds_core.observer.sds.channel_view import ChannelEvent, ChannelView
from sds_core.observer.sds.digest import ChannelDigest, ChannelDigester
from sds_core.observer.sds.excused import excused_findings
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.outline_reader import OutlineReader
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals, remains_of
from sds_core.observer.sds.tracer import SdsTracing
from sds_core.wire import Frame, decode

CHANNELS: Kind[ChannelDigest, ChannelTotals, ChannelEvent] = Kind(
    prefix="sds",
    digest=ChannelDigest,
    view=ChannelView,
    totals=ChannelTotals,
    blob_version=BLOB_VERSION,
    checksum_since=CHECKSUM_SINCE,
    label_file="labels.json",
    in_channel_table=True,
    outlets={
        DefiniteAcknowledgement: Outlet.DETAILS,
        Incident: Outlet.INCIDENTS,
        ChannelMinute: Outlet.MINUTES,
        Forgotten: Outlet.FORGOTTEN,
    },
    figures=CHANNEL_FIGURES,
    remains=remains_of,
    runbooks={
        IncidentKind.LOST: "SdsMessagesLost",
        IncidentKind.UNDELIVERED: "SdsDeliveryBudgetBurn",
        IncidentKind.UNACKNOWLEDGED: "SdsAcknowledgementBudgetBurn",
    },
    causes=causes_of,
    personal=frozenset({IncidentKind.UNDELIVERED}),
    at_root=True,
    has_objectives=True,
    is_audited=True,
    excused=excused_findings,
)
"""The kind of view for SDS channels. The name of a view is the id of its channel."""


def _decode(value: bytes, _: Headers) -> Frame:
    return decode(value)


def _fits_key(key: bytes, frame: Frame) -> bool:
    return key == frame.channel_id.encode()


SDS: TrafficProtocol[Frame] = TrafficProtocol(
    name=DEFAULT_PROTOCOL,
    decode=_decode,
    fits_key=_fits_key,
    view_name=attrgetter("channel_id"),
    new_digester=ChannelDigester,
    kind=CHANNELS,
    new_reader=OutlineReader,
    tracing=SdsTracing(),
)
"""The protocol Scalable Data Sync, in both dialects (docs/records.md)."""
