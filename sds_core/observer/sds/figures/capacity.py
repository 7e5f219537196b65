"""Bytes, participants and filters: docs/figures.md, 9."""

from __future__ import annotations

from sds_core.observer.figure_table import Entry
from sds_core.observer.figures import Figure, Share, Unit, counter, gauge
from sds_core.observer.sds.figures import groups

_FRAME_BYTES = counter(
    "sds_frame_bytes_total",
    "Bytes of frames by part, rebroadcasts included, replicas not.",
    "part",
)
_REPAIR_BYTES = counter(
    "sds_repair_bytes_total",
    "Bytes of repair request fields, and of whole frames that respond to them.",
    "direction",
)

_BUDGET_USED = gauge(
    "sds_epoch_budget_used_ratio",
    "Messages of one participant in a rate-limit epoch as a share of its budget, the "
    "greatest.",
    "epoch",
)

ENTRIES: tuple[Entry, ...] = (
    Figure(
        "bytes_content",
        Unit.BYTES,
        "Bytes of content in frames.",
        report=("bytes.content",),
        series=(_FRAME_BYTES.of("content"),),
        group=groups.TRAFFIC,
        heading="Content",
    ),
    Figure(
        "bytes_history",
        Unit.BYTES,
        "Bytes of causal histories in frames.",
        report=("bytes.history",),
        series=(_FRAME_BYTES.of("history"),),
        group=groups.TRAFFIC,
        heading="Histories",
    ),
    Figure(
        "bytes_bloom",
        Unit.BYTES,
        "Bytes of bloom filters in frames.",
        report=("bytes.bloom",),
        series=(_FRAME_BYTES.of("bloom"),),
        group=groups.TRAFFIC,
        heading="Filters",
    ),
    Figure(
        "bytes_repair",
        Unit.BYTES,
        "Bytes of repair requests in frames.",
        report=("bytes.repair", "repair_bytes.request"),
        series=(_FRAME_BYTES.of("repair"), _REPAIR_BYTES.of("request")),
        group=groups.TRAFFIC,
        heading="Requests",
    ),
    Figure(
        "bytes_other",
        Unit.BYTES,
        "Bytes of ids, Lamport timestamps and unknown fields in frames.",
        report=("bytes.other",),
        series=(_FRAME_BYTES.of("other"),),
    ),
    Figure(
        "repair_bytes_response",
        Unit.BYTES,
        "Bytes of whole frames that respond to repair requests.",
        report=("repair_bytes.response",),
        series=(_REPAIR_BYTES.of("response"),),
    ),
    Figure(
        "participants_lately",
        Unit.COUNT,
        "Distinct senders of a first copy within the last 600 s.",
        history=True,
        series=(gauge("sds_channel_participants").of(),),
        group=groups.TRAFFIC,
        heading="Participants",
    ),
    Figure(
        "participants",
        Unit.COUNT,
        "Distinct senders of first copies since the first record.",
        report=("participants",),
    ),
    Figure(
        "bloom_false_positive_ratio",
        Unit.RATIO,
        "False-positive rate of the fullest filter in use.",
        series=(gauge("sds_bloom_false_positive_ratio").of(),),
        group=groups.TRAFFIC,
        heading="False positives",
    ),
    Figure(
        "bloom_ids",
        Unit.NUMBER,
        "Message ids in the fullest filter in use, estimated from its fill.",
        series=(gauge("sds_bloom_ids").of(),),
    ),
    Figure(
        "bloom_one_percent_ms",
        Unit.TIME,
        "When the fullest filter passes a false-positive rate of 1 %, if it grows on.",
        series=(gauge("sds_bloom_one_percent_timestamp_seconds").of(),),
    ),
    Figure(
        "bloom_bits_set",
        Unit.COUNT,
        "Bits that are 1 in the fullest filter in use.",
        history=True,
    ),
    Figure(
        "bloom_bits",
        Unit.COUNT,
        "Bits of the fullest filter in use.",
        history=True,
    ),
    Figure(
        "bloom_hashes",
        Unit.COUNT,
        "Hash functions of the fullest filter in use.",
        history=True,
    ),
    Figure(
        "epoch_messages_max",
        Unit.COUNT,
        "Most messages of one participant in the last rate-limit epoch.",
        history=True,
        series=(gauge("sds_epoch_messages_max").of(),),
    ),
    Figure(
        "budget_used_now",
        Unit.RATIO,
        "Greatest share of the rate-limit budget that one participant has used in the "
        "current epoch.",
        series=(_BUDGET_USED.of("current"),),
        group=groups.BUDGET,
        heading="Used in this epoch",
    ),
    Figure(
        "budget_used_last",
        Unit.RATIO,
        "Greatest share of the rate-limit budget that one participant used in the last "
        "epoch.",
        series=(_BUDGET_USED.of("last"),),
        group=groups.BUDGET,
        heading="Used in the last epoch",
    ),
    Share(
        key="budget_repair",
        help="Messages broadcast again after a repair request, of all broadcasts.",
        part=("rebroadcasts_repair",),
        rest=("rebroadcasts_retry", "frames_sync", "frames_new"),
        group=groups.BUDGET,
        heading="Spent on repair",
        more_is_better=False,
    ),
    Share(
        key="budget_retry",
        help="Messages broadcast again without a recent repair request, of all "
        "broadcasts.",
        part=("rebroadcasts_retry",),
        rest=("rebroadcasts_repair", "frames_sync", "frames_new"),
        group=groups.BUDGET,
        heading="Spent on retries",
        more_is_better=False,
    ),
    Share(
        key="budget_sync",
        help="Sync frames, of all broadcasts.",
        part=("frames_sync",),
        rest=("rebroadcasts_repair", "rebroadcasts_retry", "frames_new"),
        group=groups.BUDGET,
        heading="Spent on sync",
        more_is_better=False,
    ),
)
