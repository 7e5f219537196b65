"""Encodes what the frames of a digest share: names, histories and filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sds_core.native import native
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.limits import MOST_HISTORY
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    Dialect,
    HistoryEntry,
    HistoryEntryLike,
    count_set_bits,
)
from sds_core.wire.outline import entry_bytes, outlined_entry

LONGEST_HINT = 1_024
"""Maximum length of a retrieval hint, bytes; longer hints are dropped.

The hints of js-waku have 32 bytes.
"""

NO_FILTER, WHOLE_FILTER, CHANGED_FILTER = range(3)
"""How a digest encodes a frame's filter. For `CHANGED_FILTER`, the digest has only the
words that differ from the previous filter."""

_WORD_BYTES = 8
_CHANGE_BYTES = 12
"""Number of bytes that a changed word and its position take in a digest."""

_NewEntries = tuple[int, list[bytes], list[int], list[tuple[bytes, HistoryEntry]]]
"""The result of `Histories.new_entries` for a history.

Part 1 is the position in `Histories.indices` at which the history starts. Part 2 has
the history's new entries, for which `Histories.add_new` extends `Histories.indices`.
Part 3 has the number of bytes that each new entry takes in the frame. Part 4 has each
new entry that `Histories.add_new` has not added before, in encoded and in decoded form.
"""


@native
class Names:
    """The ids of messages and participants that the frames of a digest name.

    Attributes:
        senders: Index of each participant id. The empty id has the index 0.
        prints: For each of `ids`, its fingerprint.
        name_senders: For each of `ids`, the index of the message's sender; 0 if the
            sender is unknown.
    """

    _indices: dict[tuple[str, str, bytes], int]
    _senders_as_bytes: dict[bytes, int]
    senders: dict[str, int]
    prints: list[int]
    name_senders: list[int]

    def __init__(self) -> None:
        self._indices = {}
        self._senders_as_bytes = {b"": 0}
        self.senders = {"": 0}
        self.prints = []
        self.name_senders = []

    @property
    def ids(self) -> list[str]:
        """The message ids. An id with several senders or hints appears repeatedly."""
        return [one for one, _, _ in self._indices]

    @property
    def hints(self) -> list[bytes]:
        """For each of `ids`, its retrieval hint; empty if it has no hint."""
        return [hint for _, _, hint in self._indices]

    def index(self, message_id: str, sender_id: str = "", hint: bytes = b"") -> int:
        """Return the index in `ids` of a message id with this sender and this hint.

        A new combination of id, sender and hint gets a new index.
        """
        # Without the hint in the key, a later frame's hint for the same id could be
        # attributed to an earlier frame.
        if len(hint) > LONGEST_HINT:
            hint = b""
        prints = self.prints
        new = len(prints)
        index = self._indices.setdefault((message_id, sender_id, hint), new)
        if index == new:
            prints.append(fingerprint(message_id))
            self.name_senders.append(self.sender(sender_id) if sender_id else 0)
        return index

    def sender(self, sender_id: str) -> int:
        """Return the index of a participant id; a new id gets a new index."""
        return self.senders.setdefault(sender_id, len(self.senders))

    def sender_in_bytes(self, sender_id: bytes) -> int | None:
        """Return the index of an encoded participant id; None if the id is unusable."""
        index = self._senders_as_bytes.get(sender_id)
        if index is None:
            text = usable_id(sender_id)
            if text is None:
                return None
            index = self._senders_as_bytes[sender_id] = self.sender(text)
        return index


@native
def usable_id(raw: bytes) -> str | None:
    """Decode an id; None if it is not UTF-8 or exceeds `MAX_ID_CHARACTERS` bytes."""
    if len(raw) > MAX_ID_CHARACTERS:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


@native
@dataclass(slots=True)
class Histories:
    """The causal histories of a digest, which are slices of one list.

    Usually, a frame's history has the last entries of the previous frame's history,
    followed by new entries. Then only the new entries are appended to the list.

    Attributes:
        indices: The list of which the histories are slices. Each entry is an index into
            the digest's names.
    """

    _names: Names
    indices: list[int] = field(default_factory=list)
    # For each entry of `indices`, its encoded form, and its size in a frame; None and 0
    # if unknown.
    _entries: list[bytes | None] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    # Position in `indices` at which the most recently added history begins.
    _begin: int = 0
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, entries: Sequence[HistoryEntryLike]) -> tuple[int, int, int]:
        """Add a history; return start and end of its slice of `indices`.

        The third part of the result is the number of entries that limits dropped.
        """
        left_out = max(0, len(entries) - MOST_HISTORY)
        added: list[int] = []
        for entry in entries[-MOST_HISTORY:]:
            message_id, sender_id = entry.message_id, entry.sender_id
            if not message_id:
                # Only a hostile sender sends an empty id.
                continue
            if max(len(message_id), len(sender_id)) > MAX_ID_CHARACTERS:
                left_out += 1
                continue
            added.append(self._names.index(message_id, sender_id, entry.retrieval_hint))
        begin, shared = self._run(self.indices, added)
        if added:
            new = added[shared:]
            self._begin = begin
            self.indices += new
            self._entries += [None] * len(new)
            self._sizes += [0] * len(new)
        return begin, begin + len(added), left_out

    def new_entries(self, entries: list[bytes], size: int) -> _NewEntries | None:
        """Compare the encoded entries of a history with earlier histories.

        The result is the argument for `add_new`. It is None if the frame must be
        decoded and its history added with `add`.
        """
        begin, shared = self._run(self._entries, entries)
        new: list[bytes] = entries[shared:] if shared else entries
        taken: int = sum(self._sizes[begin : begin + shared]) if shared else 0
        known = self._known
        sizes: list[int] = []
        unknown: list[tuple[bytes, HistoryEntry]] = []
        entry: bytes
        for entry in new:
            length: int = entry_bytes(entry)
            taken += length
            sizes.append(length)
            if entry not in known:
                found = outlined_entry(entry)
                if found is None:
                    return None
                message_id, _, sender_id = found
                if (
                    not message_id
                    or len(message_id) > MAX_ID_CHARACTERS
                    or len(sender_id) > MAX_ID_CHARACTERS
                ):
                    return None
                unknown.append((entry, found))
        return (begin, new, sizes, unknown) if taken == size else None

    def add_new(self, entries: _NewEntries) -> None:
        """Add a history from the result of `new_entries`."""
        begin, new, sizes, unknown = entries
        if begin < len(self.indices) or new:
            self._begin = begin
        if not new:
            return
        known = self._known
        for entry, (message_id, hint, sender_id) in unknown:
            known[entry] = self._names.index(message_id, sender_id, hint)
        self.indices += [known[entry] for entry in new]
        self._entries += new
        self._sizes += sizes

    def _run(self, before: list[Any], history: list[Any]) -> tuple[int, int]:
        """Return where `history` starts in `before`, and how many entries are there.

        If `before` does not end with the first entries of `history`, `history` starts
        at the end of `before`, and the number is 0.
        """
        end = len(before)
        if not history:
            return end, 0
        begin: int = self._begin
        first = history[0]
        while begin < end and before[begin] != first:
            begin += 1
        if begin == end:
            return end, 0
        shared: int = min(len(history), end - begin)
        place: int
        for place in range(1, shared):
            if before[begin + place] != history[place]:
                return end, 0
        return begin, shared


@native
@dataclass(slots=True)
class Filters:
    """The filters of a digest, stored whole or as changes to the previous filter.

    Attributes:
        shapes: ``m_bits`` and ``k`` of each filter in `whole`, in one flat list.
        changed: Total number of words in `words`.
    """

    whole: list[bytes] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)
    changed: int = 0
    # For each changed filter, the positions of the words that differ from the previous
    # filter, and these words.
    _positions: list[np.ndarray] = field(default_factory=list)
    _words: list[np.ndarray] = field(default_factory=list)
    # The previous filter: (dialect, m_bits, k, number of bytes), its words, and the
    # number of its set bits.
    _last: tuple[tuple[Dialect, int, int, int], np.ndarray, int] | None = None

    @property
    def positions(self) -> bytes:
        """Positions of all words in `words`, ``uint32``."""
        return _joined(self._positions, np.uint32)

    @property
    def words(self) -> bytes:
        """All words in which a filter differs from the previous one, ``uint64``."""
        return _joined(self._words, np.uint64)

    def add(self, filter_: Filter | None) -> tuple[int, int]:
        """Add a filter; return how it is encoded, and the number of its set bits."""
        if filter_ is None:
            return NO_FILTER, 0
        return self.add_bits(filter_.dialect, filter_.m_bits, filter_.k, filter_.bits)

    def add_bits(
        self,
        dialect: Dialect,
        m_bits: int,
        k: int,
        bits: bytes | bytearray | memoryview,
    ) -> tuple[int, int]:
        """Add a filter that is given by its fields; see `add`."""
        size = len(bits)
        if size % _WORD_BYTES:
            # No library sends a filter whose length is not a multiple of a word.
            # Such a filter is stored whole, because words cannot be compared.
            self._last = None
            bits_set = count_set_bits(dialect, bits, m_bits)
            return self._add_whole(m_bits, k, bits), bits_set
        words = np.frombuffer(bits, np.uint64)
        shape = (dialect, m_bits, k, size)
        last = self._last
        if last is not None and last[0] == shape:
            _, before, set_before = last
            positions = (before != words).nonzero()[0]
            count = len(positions)
            if count * _CHANGE_BYTES < size:
                bits_set = set_before
                if count:
                    changed = words[positions]
                    if positions[-1] < m_bits // 64:
                        bits_set += _ones_of(changed) - _ones_of(before[positions])
                    else:
                        bits_set = count_set_bits(dialect, bits, m_bits)
                    before[positions] = changed
                    self._positions.append(positions)
                    self._words.append(changed)
                    self.changed += count
                self._last = shape, before, bits_set
                return CHANGED_FILTER, bits_set
        bits_set = count_set_bits(dialect, bits, m_bits)
        self._last = shape, words.copy(), bits_set
        return self._add_whole(m_bits, k, bits), bits_set

    def _add_whole(
        self, m_bits: int, k: int, bits: bytes | bytearray | memoryview
    ) -> int:
        self.whole.append(bytes(bits))
        self.shapes += (m_bits, k)
        return WHOLE_FILTER


def _ones_of(words: np.ndarray) -> int:
    return int.from_bytes(words.tobytes()).bit_count()


def _joined(arrays: list[np.ndarray], kind: type[np.generic]) -> bytes:
    return np.concatenate(arrays).astype(kind).tobytes() if arrays else b""
