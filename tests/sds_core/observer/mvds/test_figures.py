"""Each figure of docs/figures.md, 14, on traffic of a few payloads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.verdict import Verdict
from tests.support.mvds.traffic import (
    GROUP_NAME,
    START_MS,
    Monitor,
    Record,
    message_key,
    observed,
    sent,
)

DEADLINE_MS = DEFAULTS.ack_deadline_ms
GRACE_MS = DEFAULTS.delivery_grace_ms
HORIZON_MS = DEFAULTS.horizon_ms


def _group(*records: Record, clock_ms: int = 0) -> GroupTotals:
    return observed(records, clock_ms)[GROUP_NAME]


def test_group_of_an_id_is_learnt_on_any_pair() -> None:
    """An offer counts in the group of a MESSAGE between other peers."""
    group = _group(sent(0, "a", "b", offers=[1]), sent(1, "c", "d", messages=[1]))
    assert (group.records_offer, group.records_message, group.messages) == (1, 1, 1)
    assert group.first_event_ms == START_MS


def test_id_without_a_message_is_in_no_group_until_it_is_forgotten() -> None:
    """Then it counts as unknown, with its deliveries."""
    monitor = Monitor()
    monitor.batch([sent(0, "a", "b", acks=[1]), sent(9, "a", "b", offers=[1])], 10)
    assert monitor.groups()["unknown"].records_ack == 0
    monitor.batch([], DEFAULTS.horizon_ms + 120_000)
    unknown = monitor.groups()["unknown"]
    assert (unknown.records_ack, unknown.records_offer) == (1, 1)
    assert (unknown.deliveries, unknown.delivery.count) == (1, 1)
    assert monitor.groups().keys() == {"unknown"}


def test_empty_payloads_count_as_payloads_of_no_group() -> None:
    """Their share is waste."""
    found = observed([Record(0, "a", "b", b""), sent(1, "a", "b", acks=[1])])
    assert (found["unknown"].payloads, found["unknown"].payloads_empty) == (2, 1)
    assert found["unknown"].payloads_filled == 1


def test_delivery_counts_once_for_each_peer_that_acknowledges() -> None:
    """To whom it acknowledges does not matter."""
    group = _group(
        sent(0, "a", "b", messages=[1]),
        sent(100, "b", "a", acks=[1]),
        sent(200, "b", "c", acks=[1]),
        sent(300, "c", "b", acks=[1]),
    )
    assert group.deliveries == 2
    assert (group.delivery.count, group.delivery.sum_ms) == (2, 100 + 300)


def test_latency_is_that_of_sender_and_receiver() -> None:
    """From the first MESSAGE to the first ACK back to the same peer."""
    group = _group(
        sent(0, "a", "c", messages=[1]),
        sent(50, "b", "c", messages=[1]),
        sent(60, "a", "c", messages=[1]),
        sent(150, "c", "b", acks=[1]),
        sent(400, "c", "a", acks=[1]),
        sent(500, "c", "a", acks=[1]),
    )
    assert (group.ack_latency.count, group.ack_latency.sum_ms) == (2, 100 + 400)


def test_sends_until_delivery_are_counted_for_each_delivery() -> None:
    """A MESSAGE by anybody counts; one after the ACK is a duplicate."""
    group = _group(
        sent(0, "a", "c", messages=[1]),
        sent(1, "b", "c", messages=[1]),
        sent(2, "c", "b", acks=[1]),
        sent(3, "a", "c", messages=[1]),
        sent(4, "d", "a", acks=[1]),
    )
    assert (group.sends_messages, group.sends_deliveries) == (2, 1)
    assert group.deliveries == 2
    assert group.duplicates == 1


def test_retransmission_has_type_id_sender_and_receiver_of_an_earlier_record() -> None:
    """Another receiver or type is none; a repetition in the payload is one."""
    group = _group(
        sent(0, "a", "b", messages=[1], offers=[1]),
        sent(1, "a", "c", messages=[1]),
        sent(2, "b", "a", requests=[1, 1]),
        sent(3, "a", "b", messages=[1]),
        sent(4, "b", "a", acks=[1]),
        sent(5, "b", "a", acks=[1]),
    )
    assert group.retransmissions_message == 1
    assert group.retransmissions_request == 1
    assert group.retransmissions_ack == 1
    assert group.retransmissions_offer == 0
    assert (group.records_request, group.bytes_request) == (2, 72)


@pytest.mark.parametrize("sign", ["acks", "offers", "messages"])
def test_offer_to_a_peer_that_holds_the_message_is_needless(sign: str) -> None:
    """ACK, OFFER or MESSAGE to anybody shows that a peer holds it."""
    group = _group(
        sent(0, "a", "b", messages=[1]),
        sent(1, "c", "b", offers=[1]),
        sent(2, "b", "d", **{sign: [1]}),  # type: ignore[arg-type]
        sent(3, "a", "b", offers=[1]),
    )
    assert group.needless_offers == 1


@pytest.mark.parametrize(
    ("answer_ms", "unrequested"), [(DEADLINE_MS, 0), (DEADLINE_MS + 1, 1)]
)
def test_offer_without_a_request_in_time_is_unrequested(
    answer_ms: int, unrequested: int
) -> None:
    """A request at the deadline is in time; one to another peer is none."""
    group = _group(
        sent(0, "a", "b", offers=[1]),
        sent(1, "c", "d", messages=[1]),
        sent(2, "b", "d", requests=[1]),
        sent(answer_ms, "b", "a", requests=[1]),
        clock_ms=DEADLINE_MS + 2,
    )
    assert group.unrequested_offers == unrequested


def test_offer_to_a_peer_that_gets_the_message_elsewhere_is_not_unrequested() -> None:
    """It holds the message by the deadline."""
    group = _group(
        sent(0, "a", "b", offers=[1]),
        sent(1, "c", "b", messages=[1]),
        sent(2, "b", "c", acks=[1]),
        clock_ms=DEADLINE_MS + 2,
    )
    assert group.unrequested_offers == 0


def test_request_without_a_message_back_is_unanswered() -> None:
    """A MESSAGE by another peer answers it if the requester shows to hold it."""
    records = [sent(0, "b", "a", requests=[1]), sent(1, "c", "b", messages=[1])]
    clock_ms = DEADLINE_MS + 1
    assert _group(*records, clock_ms=clock_ms).unanswered_requests == 1
    answered = [*records, sent(2, "a", "b", messages=[1])]
    assert _group(*answered, clock_ms=clock_ms).unanswered_requests == 0
    held = [*records, sent(2, "b", "c", acks=[1])]
    assert _group(*held, clock_ms=clock_ms).unanswered_requests == 0


@pytest.mark.parametrize(
    ("heard_ms", "is_fault"),
    [
        (GRACE_MS - 1, False),
        (GRACE_MS, True),
        (DEADLINE_MS, True),
        (DEADLINE_MS + 1, False),
    ],
)
def test_receiver_is_blamed_only_if_it_was_heard(
    heard_ms: int, *, is_fault: bool
) -> None:
    """An empty payload to anybody in time is enough."""
    group = _group(
        sent(0, "a", "b", messages=[1]),
        Record(heard_ms, "b", "z", b""),
        clock_ms=DEADLINE_MS + 1,
    )
    assert (group.unacknowledged, group.unwitnessed) == (is_fault, not is_fault)
    assert (group.addressed, group.in_flight) == (1, 0)


def test_receiver_that_offers_the_message_on_is_not_blamed() -> None:
    """It holds the message, whatever happened to its ACK."""
    group = _group(
        sent(0, "a", "b", messages=[1]),
        sent(GRACE_MS, "b", "c", offers=[1]),
        clock_ms=DEADLINE_MS + 1,
    )
    assert (group.unacknowledged, group.unwitnessed) == (0, 1)


def test_ephemeral_message_awaits_no_acknowledgement() -> None:
    """It is a message nevertheless."""
    group = _group(
        sent(0, "a", "b", messages=[1], ephemeral=True),
        Record(GRACE_MS, "b", "a", b""),
        clock_ms=DEADLINE_MS + 1,
    )
    assert (group.messages, group.addressed, group.unacknowledged) == (1, 0, 0)


def test_incident_names_receivers_and_senders_until_they_acknowledge() -> None:
    """Each change is a new record of the same incident."""
    monitor = Monitor()
    monitor.batch(
        [
            sent(0, "a", "b", messages=[1]),
            sent(1, "d", "c", messages=[1]),
            Record(6_001, "b", "a", b""),
            Record(6_002, "c", "a", b""),
        ],
        DEADLINE_MS + 2,
    )
    (event,) = monitor.incidents.values()
    incident = event.incident
    assert incident.key == ("unacknowledged", message_key(1).hex())
    assert SHARD_VIEWS.grouping is not None
    assert SHARD_VIEWS.grouping.name_of(event) == GROUP_NAME
    assert incident.lacking == {"b": START_MS, "c": START_MS + 1}
    assert incident.named_by == ["a", "d"]
    assert (incident.since_ms, incident.ended_ms) == (START_MS, None)
    assert incident.found_ms == START_MS + DEADLINE_MS
    assert SHARD_VIEWS.explain(incident, DEFAULTS) == (
        "a, d sent it, and within 120 seconds b, c sent payloads, but no "
        "acknowledgement"
    )
    monitor.batch([sent(DEADLINE_MS + 3, "b", "a", acks=[1])], DEADLINE_MS + 3)
    incident = next(iter(monitor.incidents.values())).incident
    assert (set(incident.lacking), incident.ended_ms) == ({"c"}, None)
    monitor.batch([sent(DEADLINE_MS + 4, "c", "a", acks=[1])], DEADLINE_MS + 4)
    incident = next(iter(monitor.incidents.values())).incident
    assert incident.ended_ms == START_MS + DEADLINE_MS + 4
    group = monitor.groups()[GROUP_NAME]
    assert (group.unacknowledged, group.resolved) == (2, 2)
    assert group.verdict is Verdict.OK


def test_message_that_an_earlier_release_saw_at_time_0_has_an_incident() -> None:
    """Its stored state does not tell that the MESSAGE was sent."""
    monitor = Monitor(restarts=True)
    records = [sent(-START_MS, "a", "b", messages=[1])]
    monitor.batch([*records, Record(6_000 - START_MS, "b", "a", b"")], 6_000 - START_MS)
    monitor.batch([], DEADLINE_MS + 1 - START_MS)
    (event,) = monitor.incidents.values()
    assert (event.incident.since_ms, event.incident.found_ms) == (0, DEADLINE_MS)
    assert event.incident.lacking == {"b": 0}


def test_copies_by_two_taps_are_one_payload() -> None:
    """Two equal payloads that each of two taps shows are two."""
    records = [
        sent(at_ms, "a", "b", messages=[1], observer=tap)
        for at_ms, tap in [(0, "x"), (10, "y"), (1_000, "x"), (1_010, "y")]
    ]
    found = observed(records)
    assert (found["unknown"].payloads, found["unknown"].replicas) == (2, 2)
    assert found[GROUP_NAME].records_message == 2
    assert found[GROUP_NAME].observers == ["x", "y"]


@pytest.mark.parametrize(
    ("second", "payloads"),
    [
        (sent(2_000, "a", "b", acks=[1], observer="y"), 1),
        (sent(2_001, "a", "b", acks=[1], observer="y"), 2),
        (sent(1, "a", "b", acks=[1], observer="x"), 2),
        (sent(1, "b", "a", acks=[1], observer="y"), 2),
        (sent(1, "a", "b", acks=[2], observer="y"), 2),
    ],
)
def test_copy_has_bytes_and_peers_of_a_payload_of_another_tap(
    second: Record, payloads: int
) -> None:
    """And it comes within the window."""
    first = sent(0, "a", "b", acks=[1], observer="x")
    assert observed([first, second])["unknown"].payloads == payloads


def test_copy_is_recognised_however_long_the_window_is() -> None:
    """Payloads are remembered for longer than the window."""
    settings = replace(DEFAULTS, replica_window_ms=60_000)
    first = sent(0, "a", "b", messages=[1], observer="x")
    copy = sent(60_000, "a", "b", messages=[1], observer="y")
    found = observed([first, copy], settings=settings)
    assert (found["unknown"].payloads, found["unknown"].replicas) == (1, 1)


def test_record_that_kafka_delivers_twice_changes_nothing() -> None:
    """Tap and sequence number tell."""
    first = sent(0, "a", "b", messages=[1], seq=7)
    again = first._replace(at_ms=60_000)
    assert observed([first, again]) == observed([first], 60_000)
    other = first._replace(at_ms=60_000, seq=8)
    assert observed([first, other])[GROUP_NAME].records_message == 2


@pytest.mark.parametrize(("age_ms", "messages"), [(HORIZON_MS, 1), (HORIZON_MS + 1, 0)])
def test_payload_older_than_the_horizon_counts_and_changes_nothing_else(
    age_ms: int, messages: int
) -> None:
    """What was said about its ids may be forgotten: no message, pair or incident."""
    clock_ms = 2 * HORIZON_MS
    records = [
        sent(clock_ms, "c", "d", messages=[1], offers=[4]),
        sent(clock_ms - age_ms, "a", "b", messages=[2, 2], offers=[3, 4], requests=[1]),
        Record(clock_ms + 6_000, "b", "a", b""),
    ]
    monitor = Monitor()
    monitor.batch(records, clock_ms + DEADLINE_MS + 1)
    group = monitor.groups()[GROUP_NAME]
    assert (group.records_message, group.messages) == (3, 1 + messages)
    assert (group.addressed, group.unacknowledged) == (1 + messages, messages)
    assert (group.records_request, group.unanswered_requests) == (1, messages)
    assert len(monitor.incidents) == messages
    monitor.batch([], clock_ms + 2 * HORIZON_MS)
    groups = monitor.groups()
    unknown = groups["unknown"]
    assert (unknown.payloads, unknown.records_offer) == (3, 3)
    assert unknown.unrequested_offers == 1 + 2 * messages
    bytes_ = [
        one.bytes_offer + one.bytes_request + one.bytes_message + one.bytes_other
        for one in groups.values()
    ]
    assert sum(bytes_) == sum(len(one.value) for one in records)


def test_old_payload_whose_ids_are_known_to_nobody_counts_in_the_named_group() -> None:
    """Only a MESSAGE names one."""
    old = sent(0, "a", "b", messages=[1], acks=[2])
    groups = observed([sent(2 * HORIZON_MS, "c", "d"), old])
    assert groups[GROUP_NAME].records_message == 1
    assert (groups["unknown"].records_ack, groups["unknown"].deliveries) == (1, 0)
    assert groups[GROUP_NAME].verdict is Verdict.WARMING_UP


@pytest.mark.parametrize(
    ("clock_ms", "verdict"),
    [
        (DEFAULTS.warm_up_ms, "warming_up"),
        (DEFAULTS.warm_up_ms + 1, "ok"),
        (DEFAULTS.verdict_window_ms, "ok"),
        (DEFAULTS.verdict_window_ms + 1, "quiet"),
    ],
)
def test_verdict_follows_the_clock(clock_ms: int, verdict: str) -> None:
    """Without faults a group warms up, is fine, and falls quiet."""
    records = [sent(0, "a", "b", messages=[1]), sent(1, "b", "a", acks=[1])]
    group = _group(*records, clock_ms=clock_ms)
    assert (group.verdict, group.verdict_reason) == (verdict, verdict)


@pytest.mark.parametrize(("others", "verdict"), [(18, "failing"), (19, "degraded")])
def test_more_than_a_share_of_unacknowledged_pairs_is_failing(
    others: int, verdict: str
) -> None:
    """All views of the group count; the evidence leaves the window with its step."""
    records = [sent(0, "a", "b", messages=[0]), Record(GRACE_MS, "b", "a", b"")]
    numbers = range(1, others + 1)
    records += [sent(6_000 + one, "a", "b", messages=[one]) for one in numbers]
    records += [sent(7_000 + one, "b", "a", acks=[one]) for one in numbers]
    monitor = Monitor()
    monitor.batch(records, DEADLINE_MS + 1)
    group = monitor.groups()[GROUP_NAME]
    assert (group.verdict, group.verdict_reason) == (verdict, "unacknowledged")
    excused = group.verdict_without(lambda since, found: True, DEFAULTS)
    assert excused == ("ok", "ok")
    monitor.batch([], DEADLINE_MS + DEFAULTS.verdict_window_ms + 10_001)
    assert monitor.groups()[GROUP_NAME].verdict is Verdict.QUIET


def test_unanswered_request_degrades() -> None:
    """Nothing else is wrong with the group."""
    group = _group(
        sent(0, "b", "a", requests=[1]),
        sent(1, "c", "d", messages=[1]),
        clock_ms=DEADLINE_MS + 2,
    )
    assert (group.verdict, group.verdict_reason) == ("degraded", "unanswered")


def test_idle_topic_needs_no_view_after_its_last_change() -> None:
    """Each minute has a deadline while a figure may change, and none later."""
    monitor = Monitor()
    monitor.batch([sent(0, "a", "b", messages=[1])], 0)
    view = monitor.views["0"]
    assert view.next_deadline_ms is not None
    monitor.batch([], 3_600_000)
    assert {one.next_deadline_ms for one in monitor.views.values()} == {None}


@pytest.mark.parametrize("warm_up_ms", [30_000, 3_600_000])
def test_silent_group_warms_up(warm_up_ms: int) -> None:
    """The views are called until its verdict has changed."""
    monitor = Monitor(replace(DEFAULTS, warm_up_ms=warm_up_ms))
    monitor.batch([sent(0, "a", "b", messages=[1]), sent(1, "b", "a", acks=[1])], 2)
    for _ in range(1_000):
        due = [one.next_deadline_ms for one in monitor.views.values()]
        if None in due:
            break
        monitor.batch([], min(ms for ms in due if ms is not None) + 1 - START_MS)
    assert {one.next_deadline_ms for one in monitor.views.values()} == {None}
    assert {one.verdict for one in monitor.groups().values()} == {Verdict.QUIET}


def test_parts_of_minutes_join_to_the_figures_of_the_group() -> None:
    """Of each view the latest minute counts: it emits those that changed."""
    monitor = Monitor()
    records = [sent(one, "a", "b", messages=[one]) for one in range(20)]
    monitor.batch([*records, sent(60_000, "b", "a", acks=[3])], 1_000_000)
    latest: dict[str, GroupTotals] = {}
    for (_, group, view), part in sorted(monitor.minutes.items(), key=lambda m: m[0]):
        if group == GROUP_NAME:
            latest[view] = part
    assert SHARD_VIEWS.grouping is not None
    joined = SHARD_VIEWS.grouping.join(list(latest.values()))
    now = monitor.groups()[GROUP_NAME]
    assert (joined.messages, joined.deliveries) == (20, 1)
    assert (joined.messages, joined.unwitnessed) == (now.messages, now.unwitnessed)
    views = {key[2] for key in monitor.minutes if key[1] == GROUP_NAME}
    assert len(views) > 1
    minutes = {key[0] for key in monitor.minutes}
    assert len(monitor.minutes) < len(minutes) * len(views), "some did not change"


def test_changed_groups_are_those_of_the_batch() -> None:
    """The others follow at the end of a minute, because verdicts change."""
    monitor = Monitor()
    other = bytes(range(8)) + bytes(24)
    monitor.batch(
        [sent(one, "a", "b", messages=[one]) for one in range(40)]
        + [sent(50 + one, "a", "b", messages=[one], group=other) for one in range(40)],
        100,
    )
    monitor.batch([sent(200, "b", "a", acks=[1])], 300)
    changed = {name for v in monitor.views.values() for name in v.changed.groups}
    assert changed == {GROUP_NAME, "unknown"}
    monitor.batch([], 61_000)
    changed = {name for v in monitor.views.values() for name in v.changed.groups}
    assert changed == {GROUP_NAME, other[:8].hex(), "unknown"}
