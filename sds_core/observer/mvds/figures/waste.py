"""What was sent without need: docs/figures.md, 14."""

from __future__ import annotations

from sds_core.observer.figures import Figure, Line, Share, counter, under

ENTRIES = under(
    "Waste",
    Share(
        key="needless",
        help="Offers to peers that were known to hold the message, of all offers.",
        part=("needless_offers",),
        rest=("offers_of_use",),
        heading="Needless offers",
        more_is_better=False,
    ),
    Share(
        key="duplicate",
        help="MESSAGEs to receivers that had acknowledged it, of all MESSAGEs.",
        part=("duplicates",),
        rest=("messages_of_use",),
        heading="Duplicates",
        more_is_better=False,
    ),
    Figure(
        "duplicates",
        "MESSAGEs to receivers that had acknowledged it.",
        report=("duplicates",),
        series=(counter("mvds_duplicates_total").of(),),
        line=Line("waste", "duplicates"),
    ),
    Figure(
        "needless_offers",
        "OFFERs to peers that were known to hold the message.",
        report=("needless_offers",),
        series=(counter("mvds_needless_offers_total").of(),),
        line=Line("waste", "needless offers"),
    ),
    Figure(
        "unrequested_offers",
        "OFFERs to which the receiver answered nothing by the deadline.",
        report=("unrequested_offers",),
        series=(counter("mvds_unrequested_offers_total").of(),),
        heading="Unrequested offers",
    ),
    Figure(
        "unanswered_requests",
        "REQUESTs that brought no MESSAGE by the deadline.",
        report=("unanswered_requests",),
        series=(counter("mvds_unanswered_requests_total").of(),),
        heading="Unanswered requests",
        grave=True,
    ),
)
