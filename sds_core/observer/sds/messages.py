"""Content messages, and their packed form in the state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from sds_core.observer.columns import pack_ints, pack_steps, unpack_ints, unpack_steps
from sds_core.wire import Dialect


class Message(msgspec.Struct):
    """One content message.

    Attributes:
        key: Fingerprint of its id.
        order: Number of messages that the channel had before it.
        t0_ms: Event time of the first copy, Unix ms.
        seen_ms: The channel's clock at the first copy; deadlines run from it.
        latest_ms: The channel's clock when it was last seen or named.
        sender: Participant index or `UNKNOWN`.
        lamport: Lamport timestamp, in the unit of its dialect.
        dialect: Dialect of the first copy.
        witnesses_needed: Number of witnesses for a probable acknowledgement.
        definite, probable: Whether it has this kind of acknowledgement.
        overdue: Whether its deadline has passed.
        in_time: Whether it was acknowledged, definitely or probably, by its deadline.
        opportunity: Whether another participant could have acknowledged it.
        witnesses: Participants whose filter held it, as long as it is not definite.
        witness_rate: Product of the false-positive rates of those filters.
        message_id: The id. Empty after a restart if no later frame can need it.
        waku_hash: Waku message hash of the first copy, 32 bytes; empty if unknown or
            if the id is.
        was_named_before: Whether it was named before any tap saw it.
        hint: Retrieval hint from a causal history; empty if there is none or if the id
            is empty.
    """

    key: int
    order: int
    t0_ms: int
    seen_ms: int
    latest_ms: int
    sender: int
    lamport: int
    dialect: Dialect
    witnesses_needed: int
    definite: bool = False
    probable: bool = False
    overdue: bool = False
    in_time: bool = False
    opportunity: bool = False
    witnesses: list[int] = []
    witness_rate: float = 1.0
    message_id: str = ""
    waku_hash: bytes = b""
    was_named_before: bool = False
    hint: bytes = b""

    @property
    def is_unacknowledged(self) -> bool:
        """Whether it was not acknowledged in time, although others could have."""
        return self.overdue and self.opportunity and not self.in_time


(
    _DEFINITE,
    _PROBABLE,
    _OVERDUE,
    _IN_TIME,
    _OPPORTUNITY,
    _NAMED,
    _NIM,
    _HEX_ID,
    _HINT_IS_HASH,
) = (1 << bit for bit in range(9))


class PackedMessages(msgspec.Struct, array_like=True):
    """Messages in order of their first copies, as columns packed by `pack_ints`.

    Attributes:
        keys, orders, t0s, delays, latest, senders, lamports, needed: Fields of each
            message, shape (n,). `orders` and `t0s` are packed by `pack_steps`;
            `delays` is `seen_ms - t0_ms`; `needed` is `witnesses_needed`.
        flags: Bits of each message, shape (n,): its booleans, its dialect, whether its
            id is hex stored as bytes, and whether its hint equals its hash (as in
            js-waku).
        ids, hashes, hints: Values of each message, shape (n,); empty if no later frame
            can need them.
        witnesses: `witnesses` and `witness_rate` by order, of messages that have any.
    """

    keys: bytes = b""
    orders: bytes = b""
    t0s: bytes = b""
    delays: bytes = b""
    latest: bytes = b""
    senders: bytes = b""
    lamports: bytes = b""
    needed: bytes = b""
    flags: bytes = b""
    ids: list[bytes] = []
    hashes: list[bytes] = []
    hints: list[bytes] = []
    witnesses: dict[int, tuple[list[int], float]] = {}

    @classmethod
    def of(
        cls, messages: Mapping[int, Message], with_ids: Collection[int]
    ) -> PackedMessages:
        """Pack messages, in their order.

        Args:
            messages: Messages by key.
            with_ids: Orders of the messages whose ids, hashes and hints are stored.
        """
        every = [m if m.order in with_ids else _bare(m) for m in messages.values()]
        ids = [_packed_id(m) for m in every]
        return cls(
            keys=pack_ints(list(messages), signed=True),
            orders=pack_steps([m.order for m in every]),
            t0s=pack_steps([m.t0_ms for m in every]),
            delays=pack_ints([m.seen_ms - m.t0_ms for m in every]),
            latest=pack_ints([m.latest_ms for m in every], signed=True),
            senders=pack_ints([m.sender for m in every], signed=True),
            lamports=pack_ints([m.lamport for m in every]),
            needed=pack_ints([m.witnesses_needed for m in every]),
            flags=pack_ints(
                [
                    # An id in hex is twice as long as its bytes.
                    _flags(m, is_hex=0 < 2 * len(packed) == len(m.message_id))
                    for m, packed in zip(every, ids, strict=True)
                ]
            ),
            ids=ids,
            hashes=[m.waku_hash for m in every],
            hints=[b"" if m.hint == m.waku_hash else m.hint for m in every],
            witnesses={
                m.order: (m.witnesses, m.witness_rate) for m in every if m.witnesses
            },
        )

    def unpacked(self) -> dict[int, Message]:
        """The messages by key, in their order."""
        return {message.key: message for message in self._each()}

    def _each(self) -> Iterator[Message]:
        columns = zip(
            unpack_ints(self.keys, signed=True).tolist(),
            unpack_steps(self.orders).tolist(),
            unpack_steps(self.t0s).tolist(),
            unpack_ints(self.delays).tolist(),
            unpack_ints(self.latest, signed=True).tolist(),
            unpack_ints(self.senders, signed=True).tolist(),
            unpack_ints(self.lamports).tolist(),
            unpack_ints(self.needed).tolist(),
            unpack_ints(self.flags).tolist(),
            self.ids,
            self.hashes,
            self.hints,
            strict=True,
        )
        for (
            key, order, t0_ms, delay_ms, latest_ms, sender, lamport, needed, flags, id_,
            waku_hash, hint,
        ) in columns:  # fmt: skip
            witnesses, rate = self.witnesses.get(order, ([], 1.0))
            yield Message(
                key,
                order,
                t0_ms,
                t0_ms + delay_ms,
                latest_ms,
                sender,
                lamport,
                Dialect.NIM if flags & _NIM else Dialect.SPEC,
                needed,
                definite=bool(flags & _DEFINITE),
                probable=bool(flags & _PROBABLE),
                overdue=bool(flags & _OVERDUE),
                in_time=bool(flags & _IN_TIME),
                opportunity=bool(flags & _OPPORTUNITY),
                witnesses=witnesses,
                witness_rate=rate,
                message_id=id_.hex() if flags & _HEX_ID else id_.decode(),
                waku_hash=waku_hash,
                was_named_before=bool(flags & _NAMED),
                hint=waku_hash if flags & _HINT_IS_HASH else hint,
            )


def _bare(message: Message) -> Message:
    """The message without id, hash and hint."""
    return msgspec.structs.replace(message, message_id="", waku_hash=b"", hint=b"")


def _packed_id(message: Message) -> bytes:
    """The bytes of an id in lower-case hex; otherwise the id in UTF-8."""
    message_id = message.message_id
    try:
        raw = bytes.fromhex(message_id)
    except ValueError:
        return message_id.encode()
    return raw if raw.hex() == message_id else message_id.encode()


def _flags(message: Message, *, is_hex: bool) -> int:
    return (
        message.definite * _DEFINITE
        | message.probable * _PROBABLE
        | message.overdue * _OVERDUE
        | message.in_time * _IN_TIME
        | message.opportunity * _OPPORTUNITY
        | message.was_named_before * _NAMED
        | (message.dialect is Dialect.NIM) * _NIM
        | is_hex * _HEX_ID
        | (message.hint == message.waku_hash) * _HINT_IS_HASH
    )
