"""When a missing message is requested, and who answers when (SDS-R)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import farmhash
import pytest

from sds_core.message_channel import Profile, RepairHash
from sds_core.message_channel.repair import (
    hash_of,
    in_response_group,
    request_offset_ms,
    response_groups,
    response_offset_ms,
)

SPEC = Profile.spec()
JS = Profile.js_sds()
NIM = Profile.nim_sds()
SHA256 = RepairHash.SHA256
FARM = RepairHash.FARM

ID_1 = "0" * 63 + "1"
PEOPLE = [f"participant {number}" for number in range(400)]


def nim_hash(text: str) -> int:
    """Nim's hash of a string: FarmHash64 as a signed number."""
    hashed: int = farmhash.Fingerprint64(text.encode())
    return hashed - (1 << 64) if hashed >> 63 else hashed


class TestHash:
    @pytest.mark.rule("sds-r-hash-1", "sds-r-hash-2", "sds-r-id-2", "sds-r-edge-3")
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # Of js-waku.
            ("alice", 3159282601090220207),
            # FIPS 180-4, example B.1.
            ("abc", 0xBA7816BF_8F01CFEA),
        ],
    )
    def test_first_eight_bytes_of_sha256_are_the_integer(
        self, text: str, expected: int
    ) -> None:
        """The most significant byte first."""
        assert hash_of(text, SHA256) == expected

    def test_texts_are_hashed_in_utf8(self) -> None:
        """All participants must hash the same bytes."""
        digest = sha256(b"\xc3\xa9").digest()
        assert hash_of("\xe9", SHA256) == int.from_bytes(digest[:8], "big")

    @pytest.mark.rule("sds-r-hash-3")
    @pytest.mark.parametrize(
        ("text", "modulus", "expected"),
        [
            ("", 1 << 64, (1 << 64) - 0x9AE16A3B2F90404F),
            ("hello", 150_000, 1_320),
            ("hello b", 150_000, 4_407),
            (ID_1, 150_000, 105_586),
            (ID_1 + " b", 150_000, 79_816),
        ],
    )
    def test_hash_of_nim_has_no_sign(
        self, text: str, modulus: int, expected: int
    ) -> None:
        """Values were printed by a compiled Nim program."""
        assert hash_of(text, FARM) % modulus == expected
        assert hash_of(text, FARM) == abs(nim_hash(text))

    def test_profiles_name_the_hash_of_their_library(self) -> None:
        """The guide and js-waku use the same."""
        assert [p.repair_hash for p in (SPEC, JS, NIM)] == [SHA256, SHA256, FARM]


class TestConfiguration:
    @pytest.mark.rule("sds-r-config-1", "sds-r-config-2")
    def test_window_is_from_30_to_120_seconds(self) -> None:
        """nim-sds has another window."""
        windows = [(p.t_min_ms, p.t_max_ms) for p in (SPEC, JS, NIM)]
        assert windows == [(30_000, 120_000), (30_000, 120_000), (30_000, 300_000)]

    @pytest.mark.rule("sds-r-config-2")
    def test_window_can_be_as_long_as_600_seconds(self) -> None:
        """The guide recommends 120 to 600 s; T_req and T_resp use all of it."""
        profile = replace(SPEC, t_max_ms=600_000)
        asked = [request_offset_ms(one, ID_1, profile) for one in PEOPLE]
        answered = [response_offset_ms(one, "alice", ID_1, profile) for one in PEOPLE]
        assert 500_000 < max(asked) < 600_000
        assert 500_000 < max(answered) < 600_000

    @pytest.mark.rule("sds-r-config-3")
    @pytest.mark.parametrize(
        ("participants", "groups"),
        [(1, 1), (127, 1), (128, 1), (255, 1), (256, 2), (383, 2), (1_000, 7)],
    )
    def test_there_is_a_group_for_every_128_participants(
        self, participants: int, groups: int
    ) -> None:
        """Rounded down, but at least one."""
        assert response_groups(participants, SPEC) == groups

    @pytest.mark.parametrize("participants", [1, 10_000])
    def test_number_of_groups_can_be_fixed(self, participants: int) -> None:
        """nim-sds configures it, with a default of 1."""
        assert response_groups(participants, replace(SPEC, response_groups=5)) == 5
        assert response_groups(participants, NIM) == 1


class TestRequest:
    @pytest.mark.rule("sds-r-treq-1", "sds-r-treq-2", "sds-r-hash-3")
    @pytest.mark.parametrize(
        ("participant", "expected"), [("alice", 99_676), ("bob", 64_341)]
    )
    @pytest.mark.parametrize("profile", [SPEC, JS], ids=["spec", "js"])
    def test_t_req_is_that_of_js_waku(
        self, participant: str, expected: int, profile: Profile
    ) -> None:
        """It depends on the participant's id."""
        assert request_offset_ms(participant, ID_1, profile) == expected

    @pytest.mark.parametrize("participant", ["alice", "bob", "carol", "dave"])
    def test_t_req_is_that_of_nim_sds(self, participant: str) -> None:
        """Its window is from 30 to 300 s."""
        hashed = abs(nim_hash(participant + ID_1))
        expected = hashed % 270_000 + 30_000
        assert request_offset_ms(participant, ID_1, NIM) == expected

    @pytest.mark.rule("sds-r-treq-3")
    def test_t_req_depends_on_the_missing_message(self) -> None:
        """One participant requests several messages at different times."""
        offsets = {request_offset_ms("alice", one, SPEC) for one in PEOPLE}
        assert len(offsets) > 390

    @pytest.mark.rule("sds-r-treq-4")
    @pytest.mark.parametrize("profile", [SPEC, NIM], ids=["spec", "nim"])
    def test_t_req_is_from_t_min_to_before_t_max(self, profile: Profile) -> None:
        """Both ends of a short window occur, and nothing outside."""
        short = replace(profile, t_min_ms=7, t_max_ms=10)
        offsets = {request_offset_ms(one, ID_1, short) for one in PEOPLE}
        assert offsets == {7, 8, 9}

    @pytest.mark.rule("sds-r-concept-2")
    def test_t_req_of_participants_is_spread_over_the_window(self) -> None:
        """So one participant requests before the others do."""
        tenths = Counter(
            (request_offset_ms(one, ID_1, SPEC) - SPEC.t_min_ms) // 9_000
            for one in PEOPLE
        )
        assert sorted(tenths) == list(range(10))
        assert all(20 <= count <= 60 for count in tenths.values())


class TestResponse:
    @pytest.mark.rule(
        "sds-r-tresp-1", "sds-r-tresp-2", "sds-r-id-1", "sds-r-edge-3", "sds-r-hash-3"
    )
    @pytest.mark.parametrize("profile", [SPEC, JS], ids=["spec", "js"])
    def test_t_resp_is_that_of_js_waku(self, profile: Profile) -> None:
        """The product of distance and hash is not truncated to 64 bits."""
        assert response_offset_ms("bob", "alice", ID_1, profile) == 3_226

    @pytest.mark.rule("sds-r-hash-3")
    @pytest.mark.parametrize("participant", ["bob", "carol", "dave", "erin", "frank"])
    @pytest.mark.parametrize("sender", ["alice", "grace"])
    def test_t_resp_is_that_of_nim_sds(self, participant: str, sender: str) -> None:
        """It XORs signed hashes and then drops the sign."""
        distance = abs(nim_hash(participant) ^ nim_hash(sender))
        reduced = (distance % 300_000) * (abs(nim_hash(ID_1)) % 300_000)
        expected = reduced % 300_000
        assert response_offset_ms(participant, sender, ID_1, NIM) == expected

    @pytest.mark.rule("sds-r-tresp-6")
    @pytest.mark.parametrize("profile", [SPEC, JS, NIM], ids=["spec", "js", "nim"])
    def test_own_message_is_answered_without_waiting(self, profile: Profile) -> None:
        """The distance to the sender itself is 0."""
        assert response_offset_ms("alice", "alice", ID_1, profile) == 0

    @pytest.mark.rule("sds-r-tresp-3", "sds-r-tresp-5", "sds-r-concept-3")
    def test_t_resp_depends_on_participant_sender_and_message(self) -> None:
        """Each of them changes the wait."""
        by_participant = {
            response_offset_ms(one, "alice", ID_1, SPEC) for one in PEOPLE
        }
        by_message = {response_offset_ms("bob", "alice", one, SPEC) for one in PEOPLE}
        by_sender = {response_offset_ms("bob", one, ID_1, SPEC) for one in PEOPLE}
        assert min(map(len, (by_participant, by_message, by_sender))) > 350

    @pytest.mark.parametrize("profile", [SPEC, NIM], ids=["spec", "nim"])
    def test_t_resp_is_from_now_to_before_t_max(self, profile: Profile) -> None:
        """Unlike T_req it has no minimum."""
        short = replace(profile, t_min_ms=2, t_max_ms=3)
        offsets = {
            response_offset_ms(one, "alice", f"m{number}", short)
            for number, one in enumerate(PEOPLE)
        }
        assert offsets == {0, 1, 2}


class TestGroups:
    @pytest.mark.rule("sds-r-group-1", "sds-r-hash-3")
    def test_group_is_by_the_hash_of_participant_and_message(self) -> None:
        """Both hashes must be equal modulo the number of groups."""
        theirs = int.from_bytes(sha256(f"alice{ID_1}".encode()).digest()[:8], "big")
        for one in PEOPLE[:100]:
            ours = int.from_bytes(sha256(f"{one}{ID_1}".encode()).digest()[:8], "big")
            same = ours % 3 == theirs % 3
            assert in_response_group(one, "alice", ID_1, 3, SHA256) is same

    @pytest.mark.rule("sds-r-group-3")
    @pytest.mark.parametrize("hashed_with", list(RepairHash))
    def test_sender_is_always_in_its_own_group(self, hashed_with: RepairHash) -> None:
        """With any number of groups."""
        assert all(
            in_response_group(one, one, ID_1, groups, hashed_with)
            for groups, one in enumerate(PEOPLE, 1)
        )

    def test_one_group_has_all_participants(self) -> None:
        """A small channel is not divided."""
        assert all(in_response_group(one, "alice", ID_1, 1, SHA256) for one in PEOPLE)

    @pytest.mark.rule("sds-r-hash-3")
    @pytest.mark.parametrize("hashed_with", list(RepairHash))
    def test_groups_divide_participants_evenly(self, hashed_with: RepairHash) -> None:
        """Every participant computes the same groups."""
        groups = {
            frozenset(
                other
                for other in PEOPLE[:200]
                if in_response_group(other, one, ID_1, 4, hashed_with)
            )
            for one in PEOPLE[:200]
        }
        assert len(groups) == 4
        assert sum(map(len, groups)) == 200
        assert all(30 <= len(group) <= 70 for group in groups)

    def test_groups_differ_from_message_to_message(self) -> None:
        """So no participant answers for all messages of a sender."""
        answers = {
            in_response_group("bob", "alice", f"m{number}", 2, SHA256)
            for number in range(50)
        }
        assert answers == {True, False}
