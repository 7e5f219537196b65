"""Names of channels on the pages, and addresses of their pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from connectors.web import words
from sds_core.observer.kinds import AnyKind
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot, Views


def called(snapshot: Snapshot, name: str, kind: AnyKind = CHANNELS) -> str:
    """Return the display name of a view; without one its own name, shortened.

    Args:
        snapshot: Holds the channel table.
        name: Own name of the view, of a channel its id.
        kind: Kind of the view.
    """
    if not kind.in_channel_table:
        return words.short(name)
    return words.short(snapshot.table.of(name).name or name)


def channel_href(channel: str) -> str:
    """Return the address of a channel's page, relative to the root of the site."""
    return f"channel?{channel_query(channel)}"


def view_href(kind: AnyKind, name: str) -> str:
    """Return the address of the page of a view, relative to the root of the site.

    Args:
        kind: Kind of the view.
        name: Own name of the view, of a channel its id.
    """
    if kind.prefix == CHANNELS.prefix:
        return channel_href(name)
    return f"views/{kind.prefix}/one?{channel_query(name)}"


def href_if_known(snapshot: Snapshot, name: str, kind: AnyKind = CHANNELS) -> str:
    """Return the address of a view's page; empty if the view has ended."""
    known = name in snapshot.views[kind.prefix].totals
    return view_href(kind, name) if known else ""


def channel_query(channel: str, name: str = "id") -> str:
    """Return a channel as a parameter of an address, by its id or its key.

    Args:
        channel: Channel id.
        name: Name of the parameter for an id.
    """
    return (
        f"key={short_key(channel)}"
        if is_long(channel)
        else f"{name}={_quoted(channel)}"
    )


def is_long(text: str) -> bool:
    """Whether untrusted text is too long to be part of an address."""
    # Most long texts are recognised without quoting them.
    return len(text) > words.LONGEST or len(_quoted(text)) > words.LONGEST


def short_key(text: str) -> str:
    """Return the text itself, or 16 hexadecimal digits instead of a long text."""
    if not is_long(text):
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def is_key(text: str) -> bool:
    """Whether a text may be the key of a long text."""
    return re.fullmatch("[0-9a-f]{16}", text) is not None


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def other_views(snapshot: Snapshot) -> Mapping[str, Views[Any]]:
    """Return the views of the protocols other than SDS, by the prefix of their kind."""
    return {
        prefix: views
        for prefix, views in snapshot.views.items()
        if prefix != CHANNELS.prefix
    }
