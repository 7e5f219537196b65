"""Payloads, records and messages: docs/figures.md, 14."""

from __future__ import annotations

from sds_core.observer.figures import Figure, Line, Share, Unit, counter, under

_TYPES = ("ack", "offer", "request", "message")

_PAYLOADS = counter(
    "mvds_payloads_total",
    "Payloads, without copies; only in the group unknown.",
    "empty",
)
_RECORDS = counter("mvds_records_total", "Records by type.", "type")
_BYTES = counter(
    "mvds_bytes_total",
    "Bytes of records by type; other ones of payloads in the group unknown.",
    "type",
)
_RETRANSMISSIONS = counter(
    "mvds_retransmissions_total",
    "Records with the type, id, sender and receiver of an earlier one.",
    "type",
)

ENTRIES = under(
    "Traffic",
    Figure(
        "messages",
        "Distinct message ids of which a MESSAGE was seen.",
        report=("messages",),
        series=(counter("mvds_messages_total").of(),),
        group="Deliveries",
        heading="Messages",
        column=1,
        line=Line("traffic", "messages"),
    ),
    Figure(
        "payloads",
        "Payloads, without copies; only in the group unknown.",
        report=("payloads.all",),
        heading="Payloads",
    ),
    Figure(
        "payloads_filled",
        "Payloads with at least one byte; only in the group unknown.",
        series=(_PAYLOADS.of("false"),),
    ),
    Figure(
        "payloads_empty",
        "Payloads with zero bytes; only in the group unknown.",
        report=("payloads.empty",),
        series=(_PAYLOADS.of("true"),),
        heading="Empty payloads",
    ),
    Share(
        key="empty",
        help="Payloads with zero bytes, of all.",
        part=("payloads_empty",),
        rest=("payloads_filled",),
        group="Waste",
        heading="Empty payloads",
        more_is_better=False,
    ),
    Figure(
        "replicas",
        "Copies of a payload by another tap; only in the group unknown.",
        report=("replicas",),
        series=(counter("mvds_replicas_total").of(),),
        heading="Replicas",
    ),
    *(
        Figure(
            f"records_{one}",
            f"Records of type {one.upper()}.",
            report=(f"records.{one}",),
            series=(_RECORDS.of(one),),
            heading=f"{one.upper()} records",
            line=Line("records", one.upper()),
        )
        for one in _TYPES
    ),
    *(
        Figure(
            f"bytes_{one}",
            f"Bytes of records of type {one.upper()}.",
            Unit.BYTES,
            report=(f"bytes.{one}",),
            series=(_BYTES.of(one),),
        )
        for one in _TYPES
    ),
    Figure(
        "bytes_other",
        "Bytes of payloads that belong to no record; only in the group unknown.",
        Unit.BYTES,
        report=("bytes.other",),
        series=(_BYTES.of("other"),),
    ),
    *(
        Figure(
            f"retransmissions_{one}",
            f"Records of type {one.upper()} that were sent before.",
            report=(f"retransmissions.{one}",),
            series=(_RETRANSMISSIONS.of(one),),
            group="Waste",
            heading=f"{one.upper()} sent again",
        )
        for one in _TYPES
    ),
)
