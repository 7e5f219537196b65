"""Memories of SDS-R: both repair buffers, and messages to answer with."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from sds_core.message_channel import AfterRequest, Eviction, Profile
from sds_core.message_channel.repair import RepairRequests, RepairResponses
from sds_core.message_channel.retained import RetainedMessages
from sds_core.wire import HistoryEntry

SPEC = Profile.spec()
T_MAX_MS = SPEC.t_max_ms
ASK_AGAIN = AfterRequest.ASK_AGAIN
YIELD = AfterRequest.YIELD
ONCE = AfterRequest.ONCE
FORGET = AfterRequest.FORGET

EVICTIONS = pytest.mark.parametrize(
    ("eviction", "evicted"), [(Eviction.EARLIEST, "b"), (Eviction.LATEST, "c")]
)


def entry(message_id: str) -> HistoryEntry:
    """A missing message of alice."""
    return HistoryEntry(message_id, b"hint", "alice")


def requests(
    t_req_ms: dict[str, int],
    after_request: AfterRequest = ASK_AGAIN,
    limit: int = SPEC.repair_buffer_limit,
) -> RepairRequests:
    """A buffer with these entries, put in one after the other."""
    buffer = RepairRequests(
        replace(SPEC, after_request=after_request, repair_buffer_limit=limit)
    )
    for message_id, one_ms in t_req_ms.items():
        assert buffer.add(entry(message_id), one_ms) is None
    return buffer


def due(buffer: RepairRequests, now_ms: int) -> list[str]:
    """Ids that a frame may carry now."""
    return [one.message_id for one in buffer.due(now_ms)]


def carry(buffer: RepairRequests, now_ms: int) -> list[str]:
    """Let a frame carry what is due; return the ids."""
    carried = buffer.due(now_ms)
    buffer.carried(carried)
    return [one.message_id for one in carried]


class TestRequests:
    @pytest.mark.rule("sds-r-state-1", "sds-r-send-1")
    def test_entry_is_due_from_its_t_req_on(self) -> None:
        """Not a millisecond before."""
        buffer = requests({"a": 10, "b": 20})
        assert due(buffer, 9) == []
        assert due(buffer, 10) == ["a"]
        assert due(buffer, 20) == ["a", "b"]

    @pytest.mark.rule("sds-r-state-2", "sds-r-send-2")
    def test_most_overdue_entries_come_first(self) -> None:
        """For any order of insertion; equal times by id."""
        buffer = requests({"c": 30, "a": 10, "y": 20, "x": 20})
        assert due(buffer, 20) == ["a", "x", "y"]
        buffer.remove("a")
        assert due(buffer, 30) == ["x", "y", "c"]

    def test_due_entries_keep_hint_and_sender(self) -> None:
        """The request has both."""
        assert requests({"a": 10}).due(10) == [HistoryEntry("a", b"hint", "alice")]

    @pytest.mark.rule("sds-r-send-2", "sds-r-performance-3")
    def test_frame_carries_at_most_three_requests(self) -> None:
        """The others go with the next frames."""
        buffer = requests(
            {"e": 50, "d": 40, "c": 30, "b": 20, "a": 10, "f": 60, "g": 70}
        )
        assert carry(buffer, 100) == ["a", "b", "c"]
        assert carry(buffer, 100) == ["d", "e", "f"]
        assert carry(buffer, 100) == ["g"]
        assert carry(buffer, 100) == []

    @pytest.mark.rule("sds-r-edge-1")
    @pytest.mark.parametrize("second_ms", [5, 50])
    def test_entry_that_is_named_again_keeps_its_t_req(self, second_ms: int) -> None:
        """There is one entry per message, with its first time."""
        buffer = requests({"a": 10})
        assert buffer.add(HistoryEntry("a", b"other", "bob"), second_ms) is None
        assert due(buffer, 9) == []
        assert buffer.due(10) == [entry("a")]
        assert len(buffer.state()) == 1

    @pytest.mark.rule("sds-r-edge-1")
    def test_carried_entry_that_is_named_again_is_not_carried_again(self) -> None:
        """There is still one entry."""
        buffer = requests({"a": 10})
        carry(buffer, 10)
        buffer.add(entry("a"), 20)
        assert due(buffer, 20) == []

    def test_removed_entry_can_be_queued_anew(self) -> None:
        """It is handled as a new entry."""
        buffer = requests({"a": 10})
        carry(buffer, 10)
        buffer.remove("a")
        assert "a" not in buffer
        assert buffer.next_ms == inf
        buffer.add(entry("a"), 50)
        assert "a" in buffer
        assert due(buffer, 50) == ["a"]

    def test_removing_an_absent_entry_changes_nothing(self) -> None:
        """The caller removes every message that arrives."""
        buffer = requests({"a": 10})
        buffer.remove("b")
        assert due(buffer, 10) == ["a"]
        assert buffer.next_ms == 10 + T_MAX_MS

    def test_buffer_knows_whether_entries_wait_for_a_frame(self) -> None:
        """Sync messages are then not postponed."""
        assert not requests({}).has_waiting
        buffer = requests({"a": 10, "b": 20})
        assert buffer.has_waiting
        carry(buffer, 10)
        assert buffer.has_waiting
        carry(buffer, 20)
        assert not buffer.has_waiting


class TestEvictionOfRequests:
    @pytest.mark.rule("sds-r-memory-1", "sds-r-memory-2", "sds-r-scenario-5")
    @EVICTIONS
    def test_full_buffer_evicts_by_its_rule(
        self, eviction: Eviction, evicted: str
    ) -> None:
        """The guide evicts the earliest T_req, js-waku the latest."""
        buffer = RepairRequests(
            replace(SPEC, repair_buffer_limit=2, repair_eviction=eviction)
        )
        assert buffer.add(entry("a"), 20) is None
        assert buffer.add(entry("b"), 10) is None
        assert buffer.add(entry("c"), 30) == evicted
        assert evicted not in buffer
        assert sorted([evicted, *due(buffer, 30)]) == ["a", "b", "c"]

    @pytest.mark.rule("sds-r-memory-1")
    def test_limit_is_a_thousand_entries(self) -> None:
        """As the guide suggests."""
        buffer = requests({f"m{number:04}": number for number in range(1_000)})
        assert buffer.add(entry("last"), 5_000) == "m0000"
        assert len(buffer.state()) == 1_000

    @EVICTIONS
    @pytest.mark.parametrize("after_request", [ASK_AGAIN, ONCE])
    def test_full_buffer_evicts_requested_entries_first(
        self, eviction: Eviction, evicted: str, after_request: AfterRequest
    ) -> None:
        """Entries that were never carried stay; among the others its rule decides."""
        profile = replace(
            SPEC,
            after_request=after_request,
            repair_buffer_limit=4,
            repair_eviction=eviction,
        )
        buffer = RepairRequests(profile)
        for message_id, t_req_ms in {"c": 30, "b": 20, "z": 99, "a": 5}.items():
            buffer.add(entry(message_id), t_req_ms)
        buffer.remove("a")
        assert carry(buffer, 30) == ["b", "c"]
        buffer.add(entry("a"), 5)
        assert buffer.add(entry("new"), 100) == evicted
        assert due(buffer, 100) == ["a", "z", "new"]
        (other,) = {"b", "c"} - {evicted}
        assert buffer.add(entry("newer"), 0) == other

    @pytest.mark.parametrize("after_request", [ASK_AGAIN, ONCE])
    def test_new_entry_is_not_evicted(self, after_request: AfterRequest) -> None:
        """As long as another entry was requested, whatever its T_req."""
        profile = replace(
            SPEC,
            after_request=after_request,
            repair_buffer_limit=1,
            repair_eviction=Eviction.LATEST,
        )
        buffer = RepairRequests(profile)
        buffer.add(entry("a"), 10)
        carry(buffer, 10)
        assert buffer.add(entry("b"), 10**9) == "a"
        assert buffer.add(entry("c"), 2 * 10**9) == "c"

    def test_evicted_entry_that_was_carried_leaves_nothing_behind(self) -> None:
        """The buffer still knows whether entries wait."""
        buffer = requests({"a": 10, "b": 20}, limit=2)
        assert carry(buffer, 10) == ["a"]
        assert buffer.add(entry("c"), 30) == "a"
        buffer.remove("c")
        assert buffer.has_waiting
        buffer.remove("b")
        assert not buffer.has_waiting

    def test_profiles_evict_as_their_library_does(self) -> None:
        """nim-sds has no limit, so it gets the guide's."""
        profiles = (SPEC, Profile.js_sds(), Profile.nim_sds())
        assert [one.repair_eviction for one in profiles] == [
            Eviction.EARLIEST,
            Eviction.LATEST,
            Eviction.EARLIEST,
        ]


class TestExpiry:
    @pytest.mark.rule("sds-r-edge-2")
    @pytest.mark.parametrize("is_carried", [False, True])
    def test_entry_expires_t_max_after_its_t_req(self, is_carried: bool) -> None:
        """Whether or not a frame carried it."""
        buffer = requests({"a": 10, "b": 20})
        if is_carried:
            assert carry(buffer, 500) == ["a", "b"]
        assert buffer.next_ms == 10 + T_MAX_MS
        assert buffer.expired(9 + T_MAX_MS) == []
        assert buffer.expired(10 + T_MAX_MS) == [entry("a")]
        assert "a" not in buffer
        assert buffer.next_ms == 20 + T_MAX_MS
        assert buffer.expired(30 + T_MAX_MS) == [entry("b")]
        assert buffer.next_ms == inf
        assert not buffer.has_waiting

    def test_expired_entry_is_returned_once(self) -> None:
        """It is no longer in the buffer then."""
        buffer = requests({"a": 10})
        assert buffer.expired(T_MAX_MS * 2) == [entry("a")]
        assert buffer.expired(T_MAX_MS * 3) == []


class TestAfterRequest:
    @pytest.mark.rule("sds-r-state-3")
    @pytest.mark.parametrize("after_request", [ASK_AGAIN, YIELD])
    def test_carried_entry_waits_for_its_answer(
        self, after_request: AfterRequest
    ) -> None:
        """Until its window ends it is not carried again."""
        buffer = requests({"a": 10}, after_request)
        assert carry(buffer, 10) == ["a"]
        assert "a" in buffer
        assert due(buffer, 9 + T_MAX_MS) == []
        assert buffer.expired(10 + T_MAX_MS) == [entry("a")]

    def test_entry_that_is_requested_once_stays_for_ever(self) -> None:
        """As in js-waku it is not carried again and does not expire."""
        buffer = requests({"a": 10, "b": 20}, ONCE)
        assert carry(buffer, 10) == ["a"]
        assert "a" in buffer
        assert buffer.next_ms == inf
        assert buffer.expired(1_000 * T_MAX_MS) == []
        assert due(buffer, 1_000 * T_MAX_MS) == ["b"]

    def test_forgotten_entry_is_removed_when_it_is_carried(self) -> None:
        """As in nim-sds; before that it can expire."""
        buffer = requests({"a": 10, "b": 20}, FORGET)
        assert carry(buffer, 10) == ["a"]
        assert "a" not in buffer
        assert buffer.next_ms == 20 + T_MAX_MS
        assert buffer.expired(20 + T_MAX_MS) == [entry("b")]

    def test_profiles_handle_carried_entries_as_their_library(self) -> None:
        """The guide prescribes none of these ways."""
        profiles = (Profile(), SPEC, Profile.js_sds(), Profile.nim_sds())
        ways = [one.after_request for one in profiles]
        assert ways == [ASK_AGAIN, YIELD, ONCE, FORGET]


class TestAskedByAnother:
    @pytest.mark.rule("sds-r-receive-6")
    def test_entry_is_held_back_for_t_max(self) -> None:
        """Then it has expired and can be queued again."""
        buffer = requests({"a": 10, "b": 20}, ASK_AGAIN)
        buffer.requested_by_another("a", 700)
        assert due(buffer, 5_000) == ["b"]
        buffer.remove("b")
        assert not buffer.has_waiting
        assert buffer.next_ms == 700 + T_MAX_MS
        assert buffer.expired(699 + T_MAX_MS) == []
        assert buffer.expired(700 + T_MAX_MS) == [entry("a")]

    def test_entry_requested_by_both_is_held_from_the_later_request(self) -> None:
        """The answer to the later request may come until then."""
        buffer = requests({"a": 10}, ASK_AGAIN)
        carry(buffer, 10)
        buffer.requested_by_another("a", 700)
        assert buffer.next_ms == 700 + T_MAX_MS

    @pytest.mark.rule("sds-r-receive-6")
    @pytest.mark.parametrize("after_request", [YIELD, ONCE, FORGET])
    def test_entry_is_removed(self, after_request: AfterRequest) -> None:
        """As the guide says and both libraries do."""
        buffer = requests({"a": 10}, after_request)
        buffer.requested_by_another("a", 5)
        assert "a" not in buffer
        assert buffer.state() == []

    @pytest.mark.parametrize("after_request", list(AfterRequest))
    def test_request_of_another_for_an_absent_entry_changes_nothing(
        self, after_request: AfterRequest
    ) -> None:
        """Others may request any id."""
        buffer = requests({"a": 10}, after_request)
        before = buffer.next_ms
        buffer.requested_by_another("b", 5)
        assert buffer.next_ms == before
        assert buffer.has_waiting
        assert due(buffer, 10) == ["a"]


class TestStateOfRequests:
    def test_times_stay_absolute(self) -> None:
        """Due and held entries have the same times after a restart."""
        buffer = requests({"b": 20, "a": 10, "c": 5_000})
        buffer.requested_by_another("b", 15)
        state = buffer.state()
        assert state == [
            (entry("b"), 20, 15 + T_MAX_MS),
            (entry("a"), 10, None),
            (entry("c"), 5_000, None),
        ]
        restored = requests({})
        restored.restore(state)
        assert restored.state() == state
        assert due(restored, 4_999) == ["a"]
        assert restored.next_ms == 10 + T_MAX_MS


class TestResponses:
    @pytest.mark.rule("sds-r-state-4", "sds-r-sweep-6")
    def test_answers_due_are_taken_out_most_overdue_first(self) -> None:
        """An answer is due from its T_resp on; equal times by id."""
        buffer = RepairResponses(SPEC)
        for message_id, t_resp_ms in {"c": 30, "b": 20, "a": 20, "d": 10}.items():
            assert buffer.add(message_id, t_resp_ms) is None
        assert buffer.next_ms == 10
        assert list(buffer.take_due(9)) == []
        assert list(buffer.take_due(20)) == ["d", "a", "b"]
        assert "d" not in buffer
        assert "c" in buffer
        assert buffer.next_ms == 30
        assert list(buffer.take_due(30)) == ["c"]
        assert buffer.next_ms == inf

    @pytest.mark.rule("sds-r-receive-2")
    def test_removed_answer_is_not_sent(self) -> None:
        """Another participant sent it; removing an absent entry is allowed."""
        buffer = RepairResponses(SPEC)
        buffer.add("a", 10)
        buffer.add("b", 20)
        assert buffer.next_ms == 10
        buffer.remove("a")
        assert buffer.next_ms == 20
        buffer.remove("c")
        assert buffer.next_ms == 20
        assert list(buffer.take_due(30)) == ["b"]

    @pytest.mark.rule("sds-r-memory-1", "sds-r-memory-2", "sds-r-scenario-5")
    @EVICTIONS
    def test_full_answer_buffer_evicts_by_its_rule(
        self, eviction: Eviction, evicted: str
    ) -> None:
        """The guide evicts the earliest T_resp, js-waku the latest."""
        buffer = RepairResponses(
            replace(SPEC, repair_buffer_limit=2, repair_eviction=eviction)
        )
        assert buffer.add("a", 20) is None
        assert buffer.add("b", 10) is None
        assert buffer.add("c", 30) == evicted
        assert evicted not in buffer
        left = {"a": 20, "b": 10, "c": 30}
        del left[evicted]
        assert buffer.state() == left
        assert buffer.next_ms == min(left.values())

    @pytest.mark.parametrize("way", ["answered", "removed"])
    def test_answer_that_is_gone_is_not_evicted_again(self, way: str) -> None:
        """The buffer stays within its limit: one that is still in goes."""
        buffer = RepairResponses(replace(SPEC, repair_buffer_limit=2))
        buffer.add("a", 10)
        buffer.add("b", 20)
        if way == "answered":
            assert list(buffer.take_due(10)) == ["a"]
        else:
            buffer.remove("a")
        assert buffer.add("c", 30) is None
        assert buffer.add("d", 40) == "b"
        assert buffer.state() == {"c": 30, "d": 40}

    def test_times_stay_absolute_over_a_restart(self) -> None:
        """Due times are the same afterwards."""
        buffer = RepairResponses(SPEC)
        buffer.add("b", 20)
        buffer.add("a", 10)
        restored = RepairResponses(SPEC)
        restored.restore(buffer.state())
        assert restored.next_ms == 10
        assert list(restored.take_due(20)) == ["a", "b"]


class TestRetained:
    @pytest.mark.rule("sds-r-state-7", "sds-r-state-9", "sds-r-modified-1")
    def test_whole_message_is_found_by_its_id(self) -> None:
        """Its bytes and its first sender."""
        kept = RetainedMessages(SPEC)
        kept.add("m1", b"frame", "alice", 5)
        assert kept.get("m1", 6) == (b"frame", "alice", 5)
        assert kept.get("m2", 6) is None

    @pytest.mark.rule("sds-r-memory-3")
    def test_message_is_stored_for_its_time(self) -> None:
        """To the last millisecond."""
        kept = RetainedMessages(replace(SPEC, repair_retention_ms=100))
        kept.add("m1", b"frame", "alice", 5)
        assert kept.get("m1", 105) is not None
        assert kept.get("m1", 106) is None

    @pytest.mark.rule("sds-r-memory-3")
    def test_messages_past_their_time_are_dropped(self) -> None:
        """They are deleted when the next message is stored."""
        kept = RetainedMessages(replace(SPEC, repair_retention_ms=100))
        for number in range(4):
            kept.add(f"m{number}", b"frame", "alice", 10 * number)
        kept.add("last", b"frame", "alice", 111)
        assert list(kept.state()) == ["m2", "m3", "last"]

    @pytest.mark.rule("sds-r-memory-3")
    def test_message_is_stored_for_t_max(self) -> None:
        """By the guide; and not a millisecond longer."""
        assert SPEC.repair_retention_ms == SPEC.t_max_ms
        kept = RetainedMessages(SPEC)
        kept.add("m1", b"frame", "alice", 7)
        assert kept.get("m1", 7 + T_MAX_MS) is not None
        assert kept.get("m1", 8 + T_MAX_MS) is None

    def test_default_stores_messages_for_the_longest_repair(self) -> None:
        """Noticed late, requested just before T_max, answered T_max later."""
        profile = Profile()
        assert profile.repair_retention_ms is not None
        assert profile.repair_retention_ms >= 2 * profile.t_max_ms

    @pytest.mark.parametrize("profile", [Profile.js_sds(), Profile.nim_sds()])
    def test_libraries_store_messages_of_any_age(self, profile: Profile) -> None:
        """Only their number is limited."""
        kept = RetainedMessages(profile)
        kept.add("m1", b"frame", "alice", 0)
        kept.add("m2", b"frame", "alice", 10**12)
        assert kept.get("m1", 10**12) is not None

    def test_oldest_messages_are_dropped_beyond_the_limit(self) -> None:
        """The number is limited as well as the age."""
        kept = RetainedMessages(replace(SPEC, repair_retained_limit=2))
        for message_id in ("m3", "m1", "m2"):
            kept.add(message_id, b"frame", "alice", 5)
        assert kept.get("m3", 5) is None
        assert list(kept.state()) == ["m1", "m2"]

    def test_stored_messages_survive_a_restart(self) -> None:
        """With the times of their storage."""
        kept = RetainedMessages(SPEC)
        kept.add("m1", b"frame", "alice", 5)
        restored = RetainedMessages(SPEC)
        restored.restore(kept.state())
        assert restored.get("m1", 5) == (b"frame", "alice", 5)
