"""What channels are called on the pages, and where their own pages are."""

from __future__ import annotations

from urllib.parse import quote

from connectors.web import words
from sds_core.observer.snapshot import Snapshot


def called(snapshot: Snapshot, channel: str) -> str:
    """What people call a channel; its id, shortened, if nobody has named it."""
    return words.shown(snapshot.table.of(channel).name or channel)


def channel_href(channel: str) -> str:
    """A channel's page, relative to the root of the site."""
    return f"channel?id={quoted(channel)}"


def quoted(channel: str) -> str:
    """A channel id as one part of an address."""
    return quote(channel, safe="")
