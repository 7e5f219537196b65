"""Names of views on the pages, and addresses of the views' pages and JSON.

Addresses are relative to the root of the site.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from urllib.parse import quote, urlencode

from connectors.web import words
from sds_core.observer.channel_table import DEFAULT_SETTINGS, ChannelSettings
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot
from sds_core.text import visible


def called(snapshot: Snapshot, name: str, kind: AnyKind) -> str:
    """Return the display name of a view or, if it has none, its own name; shortened."""
    return words.short(display_name(snapshot, name, kind) or name)


def display_name(snapshot: Snapshot, name: str, kind: AnyKind) -> str:
    """Return the name that the operator gave a view; empty without a name."""
    return settings_of(snapshot, name, kind).name


def settings_of(snapshot: Snapshot, name: str, kind: AnyKind) -> ChannelSettings:
    """Return the operator's settings of a view; defaults if its kind has none."""
    return snapshot.table.of(name) if kind.in_channel_table else DEFAULT_SETTINGS


def path_of(kind: AnyKind, page: str = "") -> str:
    """Return the path of a page about a kind of view; by default, the kind's list."""
    parts = ("views", kind.prefix, page)
    return page if kind.at_root else "/".join(filter(None, parts))


def json_href(kind: AnyKind, name: str | None = None, what: str = "") -> str:
    """Return the API's address for a view; for all views if `name` is None.

    `what` is the last part of the path, such as `incidents`; empty for the figures.
    """
    path = path_of(kind, what)
    if kind.at_root and not what:
        path = kind.names.many
    label = label_of(kind) if what else "id"
    return f"api/v1/{path}" + ("" if name is None else f"?{view_query(name, label)}")


def incidents_href(kind: AnyKind, view: str, /, **chosen: str) -> str:
    """Return the address of a view's incidents; `chosen` has further parameters."""
    query = view_query(view, label_of(kind))
    rest = urlencode(chosen, errors="surrogatepass")
    return "&".join(filter(None, (f"{path_of(kind, 'incidents')}?{query}", rest)))


def unresolved_href(
    kind: AnyKind,
    view: str,
    problem: IncidentKind | None = None,
    participant: str | None = None,
) -> str:
    """Return the address of the list of a view's unresolved incidents.

    `problem` limits the list to a kind of incident. `participant` limits the list to
    messages that this participant lacks.
    """
    chosen = {"standing": "true"}
    if problem is not None:
        chosen["kind"] = problem.value
    if participant is not None:
        chosen["participant"] = short_key(participant)
    return incidents_href(kind, view, **chosen)


def trace_href(kind: AnyKind, view: str, message_id: str, since_ms: int) -> str:
    """Return the address of the trace of a message.

    `since_ms` is the approximate time at which the message appeared, Unix ms.
    """
    query = view_query(view, label_of(kind))
    rest = {"message": message_id, "since": since_ms}
    encoded = urlencode(rest, errors="surrogatepass")
    return f"{path_of(kind, 'trace')}?{query}&{encoded}"


def label_of(kind: AnyKind) -> str:
    """Return the name of the parameter that selects a view in addresses of lists."""
    return kind.names.one if kind.at_root else "id"


def view_href(kind: AnyKind, name: str) -> str:
    """Return the address of the page of a view."""
    page = path_of(kind, kind.names.one if kind.at_root else "one")
    return f"{page}?{view_query(name)}"


def href_if_known(snapshot: Snapshot, name: str, kind: AnyKind) -> str:
    """Return the address of a view's page; empty if the view no longer exists."""
    known = name in snapshot.views[kind.prefix].totals
    return view_href(kind, name) if known else ""


def view_query(view: str, label: str = "id") -> str:
    """Return the parameter that selects a view by id or by key, for an address."""
    return f"key={short_key(view)}" if needs_key(view) else f"{label}={_quoted(view)}"


def runbook_href(alert: str, view: str = "") -> str:
    """Return the address of a runbook; `view` is omitted if its id does not fit."""
    of_view = view and not needs_key(view)
    return f"runbooks/{alert}" + (f"?{view_query(view, 'channel')}" if of_view else "")


def needs_key(text: str) -> bool:
    """Whether an address or form must contain a text's key instead of the text.

    A text that is too long or has hidden characters needs a key.
    """
    # The first condition is cheap, and makes it unnecessary to quote most long texts.
    return (
        len(text) > words.LONGEST
        or len(_quoted(text)) > words.LONGEST
        or visible(text) != text
    )


def short_key(text: str) -> str:
    """Return the text itself or, if it needs a key, its key of 16 hex digits."""
    if not needs_key(text):
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def is_key(text: str) -> bool:
    """Whether a text has the form of a key: 16 hexadecimal digits."""
    return re.fullmatch("[0-9a-f]{16}", text) is not None


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")
