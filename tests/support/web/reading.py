"""Pages as text and tags, without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec

from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
    ParticipantTable,
)

HASH = "884c806b73fb8e79827c1ada2598a895369053663467025ae55a1d7b768f479f"
"""Id of the message of `lost`."""


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text of the body."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store one tag."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Store text with white space collapsed."""
        self.text += " " + " ".join(data.split())


def text_of(client: httpx.Client, path: str) -> str:
    """Return the text of a page."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(Tags(answer.text).text.split())


def keys(client: httpx.Client, path: str, tag: str = "tr") -> list[str | None]:
    """Return the keys of a page's rows or articles, in order."""
    tags = Tags(client.get(path).text).found
    return [a["data-key"] for name, a in tags if name == tag and "data-key" in a]


def packed(*participants: ParticipantFigures, others: int = 0) -> bytes:
    """Return the figures of participants, as totals hold them."""
    return msgspec.msgpack.encode(ParticipantTable([*participants], others))


def lost(channel: str = "c", **values: Any) -> ChannelIncident:
    """Return a lost message that is still lost."""
    incident = Incident(
        IncidentKind.LOST,
        HASH,
        "alice",
        since_ms=1_786_276_000_000,
        found_ms=1_786_276_300_000,
        lacking={"bob": 1_786_276_060_000},
        named_by=["carol"],
        waku_hash=bytes(range(32)),
        hint=b"\x0a\x0b",
    )
    for name, value in values.items():
        setattr(incident, name, value)
    return ChannelIncident(channel, incident, tap_hole=True)
