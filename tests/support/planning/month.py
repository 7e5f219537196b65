"""A simulated channel, minute by minute: growth, days, weeks and chance from a seed.

Nothing here is measured: the rates of messages are drawn, not sent by participants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

MINUTES_A_DAY = 1_440
EPOCH_MINUTES = 10
MONDAY_MS = 1_786_320_000_000
"""2026-08-10 00:00 UTC."""

_WEEK = np.array([1.1, 1.15, 1.1, 1.05, 1.0, 0.75, 0.7])
"""Rate by day of the week, from Monday on."""
_HISTORY_BYTES = 340
_FILTER_BYTES = 18_760
_OTHER_BYTES = 96


@dataclass(frozen=True)
class Month:
    """A simulated channel.

    Attributes:
        seed: Of all chance.
        days: Length.
        messages_a_day: Mean on the first day.
        growth: Daily growth, as a share: 0.01 is 1 % a day.
        participants: They send with equal rates.
        day_noise: Deviation of the logarithm of a day's rate.
        persistence: Correlation of that deviation with that of the day before.
        content_bytes: Mean length of a content.
        filter_bits: Of the filter, which has 10 hash functions and never rolls over.
        begin_ms: Unix ms; a Monday, 00:00 UTC.
    """

    seed: int = 1
    days: int = 37
    messages_a_day: float = 4_000.0
    growth: float = 0.01
    participants: int = 5
    day_noise: float = 0.03
    persistence: float = 0.3
    content_bytes: float = 220.0
    filter_bits: int = 1_500_000
    begin_ms: int = MONDAY_MS

    @cached_property
    def _rates(self) -> np.ndarray:
        """Expected messages in each minute, shape (days * 1440,)."""
        random = np.random.default_rng(self.seed)
        noise = np.zeros(self.days)
        steps = random.normal(0, self.day_noise, self.days)
        scale = np.sqrt(1 - self.persistence**2)
        for day in range(self.days):
            before = noise[day - 1] if day else 0.0
            noise[day] = self.persistence * before + scale * steps[day]
        minute = np.arange(self.days * MINUTES_A_DAY)
        day = minute // MINUTES_A_DAY
        hour = minute % MINUTES_A_DAY / 60
        of_day = 1 + 0.8 * np.sin((hour - 9) / 24 * 2 * np.pi)
        return np.asarray(
            self.messages_a_day
            / MINUTES_A_DAY
            * (1 + self.growth) ** (minute / MINUTES_A_DAY)
            * _WEEK[day % 7]
            * of_day
            * np.exp(noise[day])
        )

    @cached_property
    def grown(self) -> dict[str, np.ndarray]:
        """Growth of each counter in each minute, shape (days * 1440,)."""
        random = np.random.default_rng(self.seed + 1_000_003)
        sent = random.poisson(self._rates)
        repeated = random.binomial(sent, 0.02)
        answered = random.binomial(sent, 0.015)
        frames = sent + repeated + answered
        content = random.gamma(np.maximum(frames, 1e-9), self.content_bytes)
        content = np.where(frames > 0, content, 0).astype(int)
        per_frame = _HISTORY_BYTES + _FILTER_BYTES + _OTHER_BYTES + self.content_bytes
        return {
            "messages": sent,
            "frames_content": frames,
            "replicas": frames,
            "rebroadcasts_retry": repeated,
            "bytes_content": content,
            "bytes_history": frames * _HISTORY_BYTES,
            "bytes_bloom": frames * _FILTER_BYTES,
            "bytes_repair": random.binomial(sent, 0.03) * 64,
            "bytes_other": frames * _OTHER_BYTES,
            "repair_bytes_response": (answered * per_frame).astype(int),
        }

    @cached_property
    def epoch_messages_max(self) -> np.ndarray:
        """Most messages of one participant in the last whole epoch, by minute."""
        random = np.random.default_rng(self.seed + 2_000_003)
        by_epoch = self._rates.reshape(-1, EPOCH_MINUTES).sum(axis=1)
        shares = np.full(self.participants, 1 / self.participants)
        sent = random.poisson(by_epoch[:, None] * shares)
        last = np.concatenate([[0], sent.max(axis=1)[:-1]])
        return np.repeat(last, EPOCH_MINUTES)

    def rows(self, days: int | None = None, step: int = 60) -> list[dict[str, Any]]:
        """Rows of the history: figures at the end of every `step` minutes.

        Args:
            days: Only the first days.
            step: Minutes from row to row; gauges are the greatest of them.
        """
        end = min(self.days if days is None else days, self.days) * MINUTES_A_DAY
        at = np.arange(step - 1, end, step)
        columns = {name: np.cumsum(one)[at] for name, one in self.grown.items()}
        columns["epoch_messages_max"] = (
            self.epoch_messages_max[:end].reshape(-1, step).max(axis=1)
        )
        filled = bits_of(columns["messages"], self.filter_bits)
        columns |= {
            "bloom_bits_set": filled,
            "bloom_bits": np.full(len(at), self.filter_bits),
            "bloom_hashes": np.full(len(at), 10),
        }
        lists = {name: one.tolist() for name, one in columns.items()}
        return [
            {"minute": self.begin_ms + int(minute) * 60_000}
            | {name: one[n] for name, one in lists.items()}
            for n, minute in enumerate(at)
        ]

    def by_day(self, name: str) -> np.ndarray:
        """Growth of a counter in each day, shape (days,)."""
        return np.asarray(self.grown[name].reshape(self.days, -1).sum(axis=1))

    @property
    def bytes_by_day(self) -> np.ndarray:
        """Bytes of all parts in each day, shape (days,)."""
        return np.asarray(
            sum(self.by_day(name) for name in self.grown if name.startswith("bytes_"))
        )


def bits_of(ids: np.ndarray, m_bits: int, k: int = 10) -> np.ndarray:
    """Expected bits that are set in a filter of so many ids."""
    return np.rint(m_bits * (1 - np.exp(-k * ids / m_bits))).astype(int)
