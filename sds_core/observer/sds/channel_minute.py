"""One minute of an SDS channel, as histories store it."""

from __future__ import annotations

from sds_core.observer.minutes import Minute
from sds_core.observer.sds.totals import ChannelTotals


class ChannelMinute(Minute[ChannelTotals], array_like=True, tag="ChannelMinute"):
    """The figures of a channel at the end of one minute.

    The tag is persisted: it distinguishes minutes from incidents in the outbox.
    """
