"""All figures of a channel, and its incidents."""

from __future__ import annotations

from typing import Any

from tests.support.reference.capacity import BUDGET, Capacity
from tests.support.reference.verdict import Verdict

BOUNDS_MS = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000,
]  # fmt: skip


class Reference(Verdict, Capacity):
    """All figures of one channel at one moment.

    Args:
        records: In topic order.
        end: The clock at the end; not before the last record's.
    """

    def figures(self) -> dict[str, Any]:
        """All figures by the names of `ChannelTotals`; durations as counts and sum."""
        named = {i for one in self.broadcasts for i in one.history()}
        asked = {i for one in self.broadcasts for i in one.requests()}
        fates = [self.fate(m) for m in self.messages]
        gaps = {i: gap for i in named if (gap := self.gap(i)) is not None}
        outcomes = [outcome for outcome, _ in gaps.values()]
        retracted = {
            i
            for i, (outcome, _) in gaps.items()
            if outcome == "lost" and self.first_with_id(i) is not None
        }
        episodes = [self.episodes(i) for i in asked]
        answers = [a for found, _, _ in episodes for a in found]
        responses = [r for _, _, found in episodes for r in found]
        definite = [(m, d) for m in self.messages if (d := self.definite(m))]
        probable = [(m, p) for m in self.messages if (p := self.probable(m))]
        in_flight = [
            m.at
            for m, fate in zip(self.messages, fates, strict=True)
            if fate == "in_flight"
        ]
        repairs = [r for r in self.rebroadcasts if self.is_live(r.message_id, r)]
        retries = [r for r in self.rebroadcasts if r not in repairs]
        most_now, most_last = (self.epoch_messages_max(retries, ago) for ago in (0, 1))
        figures = {
            "first_event": min((one.at for one in self.seen), default=None),
            "last_event": max((one.at for one in self.seen), default=None),
            "frames": self._frames(),
            "replicas": len(self.seen) - len(self.broadcasts),
            "rebroadcasts_repair": len(repairs),
            "rebroadcasts_retry": len(retries),
            "messages": len(self.messages),
            "message_id_collisions": len(self.collisions),
            "acknowledged_definite": len(definite),
            "acknowledged_probable": len(probable),
            "oldest_in_flight": min(in_flight, default=None),
            "definite_latency": histogram(max(0, d.at - m.at) for m, d in definite),
            "probable_latency": histogram(max(0, p.at - m.at) for m, p in probable),
            "gaps_opened": len(gaps),
            "gaps_retracted": len(retracted),
            "gap_duration": histogram(d for _, d in gaps.values() if d is not None),
            "repair_requests": sum(len(one.requests()) for one in self.broadcasts),
            "repair_requests_for_received": sum(
                one.holds(i) for one in self.broadcasts for i in one.requests()
            ),
            "repair_answered": len(answers),
            "repair_expired": sum(len(expired) for _, expired, _ in episodes),
            "repair_redundant": len(responses) - len(answers),
            "repair_response": histogram(answers),
            "repair_bytes_response": sum(len(one.value()) for one in responses),
            "participants": len({one.sender for one in self.first_copies} - {""}),
            "participants_lately": len(self.participants_lately()),
            "epoch_messages_max": most_last,
            "budget_used_now": most_now / BUDGET,
            "budget_used_last": most_last / BUDGET,
            "bloom_worst": self.bloom_worst(),
            "verdict": self.verdict_at(self.last_moment()),
            "verdict_since": self.verdict_since(),
        }
        deliveries = self.deliveries()
        delivered = [one.outcome for one in deliveries]
        for outcome in ("first_pass", "recovered", "lost"):
            figures[f"deliveries_{outcome}"] = delivered.count(outcome)
        figures["deliveries_retracted"] = sum(one.is_retracted for one in deliveries)
        figures["delivery_recovery"] = histogram(
            one.recovery() for one in deliveries if one.outcome == "recovered"
        )
        sizes = self.bytes()
        for part in ("content", "history", "bloom", "repair", "other"):
            figures[f"bytes_{part}"] = sizes[part]
        for fate in ("acknowledged_in_time", "unacknowledged", "unwitnessed"):
            figures[fate] = fates.count(fate)
        figures["in_flight"] = len(in_flight)
        for outcome in ("late", "repaired", "recovered_late"):
            figures[f"gaps_{outcome}"] = outcomes.count(outcome)
        for outcome in ("lost", "tap_gap", "open"):
            figures[f"gaps_{outcome}"] = outcomes.count(outcome)
        return figures

    def _frames(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in self.broadcasts:
            key = f"{one.record.frame.kind}.{one.dialect}"
            counts[key] = counts.get(key, 0) + 1
        return counts

    def incidents(self) -> set[tuple[str, str, frozenset[str]]]:
        """Kind, message id and who lacks the message, of what still stands."""
        named = {i for one in self.broadcasts for i in one.history()}
        nobody: frozenset[str] = frozenset()
        lost = {
            ("lost", i, nobody)
            for i in named
            if (gap := self.gap(i)) is not None
            and gap[0] == "lost"
            and self.first_with_id(i) is None
        }
        unacknowledged = {
            ("unacknowledged", m.message_id, nobody)
            for m in self.messages
            if self.fate(m) == "unacknowledged" and self.acknowledged_at(m) is None
        }
        lacking: dict[str, set[str]] = {}
        for one in self.deliveries():
            if one.lost is not None and one.shown is None:
                lacking.setdefault(one.message.message_id, set()).add(one.participant)
        undelivered = {("undelivered", i, frozenset(p)) for i, p in lacking.items()}
        return lost | unacknowledged | undelivered


def histogram(durations: Any) -> tuple[list[int], int]:
    """Counts per bucket, the open one last, and the sum."""
    values = list(durations)
    places = [sum(bound < value for bound in BOUNDS_MS) for value in values]
    return [places.count(i) for i in range(len(BOUNDS_MS) + 1)], sum(values)
