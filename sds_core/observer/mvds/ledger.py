"""Adds the figures of each message to the totals of its group."""

from __future__ import annotations

from sds_core.native import native
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.messages import Message
from sds_core.observer.mvds.totals import UNKNOWN_GROUP


@native
class Ledger:
    """Adds the figures of each message to the totals of its group.

    Until the group of a message is known, the message keeps its figures, so no figure
    moves between groups.
    """

    groups: Groups

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def count(self, message: Message, field: str, number: int = 1) -> None:
        """Add a number to a figure of the message's group, once the group is known."""
        if not number:
            return
        if not message.group:
            waiting = message.waiting
            waiting[field] = waiting.get(field, 0) + number
            return
        totals = self.groups[message.group]
        setattr(totals, field, getattr(totals, field) + number)

    def delivered(self, message: Message, duration_ms: int) -> None:
        """Record the duration of a delivery."""
        if message.group:
            self.groups[message.group].delivery.observe(duration_ms)
        else:
            message.waiting_deliveries_ms.append(duration_ms)

    def settle(self, message: Message, group: str) -> None:
        """Set the group of a message, and add the message's figures to the group."""
        waiting, deliveries_ms = message.waiting, message.waiting_deliveries_ms
        message.group, message.waiting, message.waiting_deliveries_ms = group, {}, []
        for field, number in waiting.items():
            self.count(message, field, number)
        for duration_ms in deliveries_ms:
            self.delivered(message, duration_ms)

    def forget(self, message: Message, clock_ms: int) -> None:
        """Add the figures of a message without a known group to `UNKNOWN_GROUP`."""
        if not message.group:
            groups = self.groups
            groups.saw(UNKNOWN_GROUP, message.first_ms, clock_ms, "")
            self.settle(message, UNKNOWN_GROUP)
