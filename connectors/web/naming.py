"""What channels are called on the pages, and where their own pages are."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import quote

from connectors.web import words
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot


def called(snapshot: Snapshot, name: str, kind: AnyKind = CHANNELS) -> str:
    """Return what people call a view; its own name, shortened, if nobody named it.

    Args:
        snapshot: Holds the channel table.
        name: Own name of the view, of a channel its id.
        kind: Kind of the view.
    """
    if not kind.in_channel_table:
        return words.short(name)
    return words.short(snapshot.table.of(name).name or name)


def channel_href(channel: str) -> str:
    """A channel's page, relative to the root of the site."""
    return f"channel?{channel_query(channel)}"


def channel_query(channel: str, name: str = "id") -> str:
    """A channel as a parameter of an address, by its id or its key.

    Args:
        channel: Its id.
        name: Of the parameter that has an id.
    """
    return (
        f"key={short_key(channel)}"
        if is_long(channel)
        else f"{name}={_quoted(channel)}"
    )


def is_long(text: str) -> bool:
    """Whether text of strangers is too long for an address, and for each poll."""
    # Most of the long are known without quoting them.
    return len(text) > words.LONGEST or len(_quoted(text)) > words.LONGEST


def short_key(text: str) -> str:
    """The text itself, or 16 hexadecimal digits in place of a long one."""
    if not is_long(text):
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")
