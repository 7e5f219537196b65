"""Figures of bytes, participants and filters: docs/figures.md, 9."""

from __future__ import annotations

from sds_core.observer.figures import Figure, Share, Unit, counter, gauge, under

_FRAME_BYTES = counter(
    "sds_frame_bytes_total",
    "Bytes of frames by part, including rebroadcasts but not replicas.",
    "part",
)
_REPAIR_BYTES = counter(
    "sds_repair_bytes_total",
    "Bytes of repair request fields, and of whole frames that answer repair requests.",
    "direction",
)

_BUDGET_USED = gauge(
    "sds_epoch_budget_used_ratio",
    "Greatest share of the rate-limit budget that one participant used, by epoch "
    "(current, last).",
    "epoch",
)

_TRAFFIC = under(
    "Traffic",
    *(
        Figure(
            f"bytes_{part}",
            f"Bytes of {content} in frames.",
            Unit.BYTES,
            report=(f"bytes.{part}",),
            series=(_FRAME_BYTES.of(part),),
            heading=heading,
        )
        for part, content, heading in (
            ("content", "content", "Content"),
            ("history", "causal histories", "Histories"),
            ("bloom", "bloom filters", "Filters"),
        )
    ),
    Figure(
        "bytes_repair",
        "Bytes of repair requests in frames.",
        Unit.BYTES,
        report=("bytes.repair", "repair_bytes.request"),
        series=(_FRAME_BYTES.of("repair"), _REPAIR_BYTES.of("request")),
        heading="Requests",
    ),
    Figure(
        "bytes_other",
        "Bytes of ids, Lamport timestamps and unknown fields in frames.",
        Unit.BYTES,
        report=("bytes.other",),
        series=(_FRAME_BYTES.of("other"),),
    ),
    Figure(
        "repair_bytes_response",
        "Bytes of whole frames that respond to repair requests.",
        Unit.BYTES,
        report=("repair_bytes.response",),
        series=(_REPAIR_BYTES.of("response"),),
    ),
    Figure(
        "participants_lately",
        "Participants that sent a first copy within the last 600 s.",
        history=True,
        series=(gauge("sds_channel_participants").of(),),
        heading="Participants",
    ),
    Figure(
        "participants",
        "Participants that sent a first copy since the channel's first record.",
        report=("participants",),
    ),
    Figure(
        "bloom_false_positive_ratio",
        "False-positive rate of the fullest bloom filter in use.",
        Unit.RATIO,
        series=(gauge("sds_bloom_false_positive_ratio").of(),),
        heading="False positives",
    ),
    Figure(
        "bloom_ids",
        "Message ids in the fullest filter in use, estimated from the number of its "
        "1 bits.",
        Unit.NUMBER,
        series=(gauge("sds_bloom_ids").of(),),
    ),
    Figure(
        "bloom_one_percent_ms",
        "Time at which the fullest filter will exceed a false-positive rate of 1 %, "
        "if the filter continues to fill at its current rate.",
        Unit.TIME,
        series=(gauge("sds_bloom_one_percent_timestamp_seconds").of(),),
    ),
    Figure(
        "bloom_bits_set",
        "Number of bits that are 1 in the fullest filter in use.",
        history=True,
    ),
    Figure("bloom_bits", "Number of bits of the fullest filter in use.", history=True),
    Figure(
        "bloom_hashes",
        "Number of hash functions of the fullest filter in use.",
        history=True,
    ),
    Figure(
        "epoch_messages_max",
        "Messages in the previous rate-limit epoch from the participant that sent "
        "the most.",
        history=True,
        series=(gauge("sds_epoch_messages_max").of(),),
    ),
)

_BUDGET = under(
    "Rate-limit budget",
    Figure(
        "budget_used_now",
        "Greatest share of the rate-limit budget that one participant has used in the "
        "current epoch.",
        Unit.RATIO,
        series=(_BUDGET_USED.of("current"),),
        heading="Used in this epoch",
    ),
    Figure(
        "budget_used_last",
        "Greatest share of the rate-limit budget that one participant used in the last "
        "epoch.",
        Unit.RATIO,
        series=(_BUDGET_USED.of("last"),),
        heading="Used in the last epoch",
    ),
    Share(
        key="budget_repair",
        help="Messages broadcast again after a repair request, of all broadcasts.",
        part=("rebroadcasts_repair",),
        rest=("rebroadcasts_retry", "frames_sync", "frames_new"),
        heading="Spent on repair",
        more_is_better=False,
    ),
    Share(
        key="budget_retry",
        help="Messages broadcast again without a recent repair request, of all "
        "broadcasts.",
        part=("rebroadcasts_retry",),
        rest=("rebroadcasts_repair", "frames_sync", "frames_new"),
        heading="Spent on retries",
        more_is_better=False,
    ),
    Share(
        key="budget_sync",
        help="Sync frames, of all broadcasts.",
        part=("frames_sync",),
        rest=("rebroadcasts_repair", "rebroadcasts_retry", "frames_new"),
        heading="Spent on sync",
        more_is_better=False,
    ),
)

ENTRIES = [*_TRAFFIC, *_BUDGET]
