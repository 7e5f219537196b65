"""What ``sds-monitor trace`` prints: each later poll of ``--follow`` adds to it."""

from __future__ import annotations

import itertools
import json

import pytest

from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Subject
from sds_core.trace.trace import TraceReader
from sds_core.wire import Frame, encode
from streaming.cli.actions.trace import _Output
from streaming.cli.trace_options import TraceForm
from streaming.trace_feed import TraceFeed
from tests.support.frames import SECOND, START_MS, FrameFactory

FRAMES = FrameFactory("town")


class Followed:
    """``trace --follow`` of messages of the channel ``town``, without Kafka.

    Each `poll` prints what the frames added since the previous poll show.
    """

    def __init__(
        self,
        capture: pytest.CaptureFixture[str],
        *message_ids: str,
        form: TraceForm = TraceForm.TEXT,
        anonymise: bool = False,
    ) -> None:
        subjects = [Subject("town", one) for one in message_ids]
        reader = TraceReader(
            by_name(PROTOCOLS)["sds"], subjects, DEFAULTS, has_all_numbers=True
        )
        self._feed = TraceFeed(reader, "sds", b"town", START_MS)
        self._output = _Output(form, anonymise)
        self._capture = capture
        self._offsets = itertools.count()
        self._at = 0

    def add(
        self, at: int, frame: Frame, tap: str = "tap", *, seq: int | None = None
    ) -> None:
        """Add a frame that a tap captured, `at` ms after the start."""
        self._at = at
        headers: tuple[tuple[str, bytes], ...] = (("observer", tap.encode()),)
        if seq is not None:
            headers += (("seq", str(seq).encode()),)
        offset, time_ms = next(self._offsets), START_MS + at
        value = encode(frame)
        self._feed.add(RawRecord(0, offset, time_ms, b"town", value, headers))

    def poll(self) -> list[str]:
        """Return the lines that the poll prints."""
        self._output.show(self._feed.traces(START_MS + self._at))
        self._feed.admit(START_MS + self._at + SECOND)
        return self._lines()

    def end(self) -> list[str]:
        """Return the lines that the end of the command prints."""
        self._output.finish(None)
        return self._lines()

    def _lines(self) -> list[str]:
        return [one.rstrip() for one in self._capture.readouterr().out.splitlines()]


def legend(lines: list[str]) -> dict[str, str]:
    """Return {letter: participant} of the lines that explain letters."""
    words = [one.split() for one in lines]
    return {one[0]: one[1] for one in words if len(one) == 2 and len(one[0]) == 1}


def test_a_participant_keeps_its_letter(capsys: pytest.CaptureFixture[str]) -> None:
    """Also when the sender becomes known later; new letters are explained first."""
    followed = Followed(capsys, "M")
    followed.add(0, FRAMES.content("x", "carol"))
    followed.add(1 * SECOND, FRAMES.content("b1", "bob", 1001, history=["M"]))
    followed.add(2 * SECOND, FRAMES.content("c1", "carol", 1002, holds=["M"]))
    first = followed.poll()
    assert legend(first) == {"A": "carol", "B": "bob"}
    followed.add(3 * SECOND, FRAMES.content("M", "alice", 1000))
    followed.add(4 * SECOND, FRAMES.content("d1", "dave", 1003, history=["M"]))
    followed.add(5 * SECOND, FRAMES.content("b2", "bob", 1004, history=["M"]))
    later = followed.poll()
    assert later[:5] == [
        "sender   alice",
        "kind     content",
        "dialect  spec",
        "C        alice",
        "D        dave",
    ]
    assert "+2.000 s ··C· C: sent [tap]" in later
    assert "+3.000 s ···D D: its causal history names the message [tap]" in later
    assert any(one.startswith("+0.000 s ·B·· B: acknowledged:") for one in later)
    assert followed.poll() == []


def test_times_have_one_origin(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed when the message appears, before the first step."""
    followed = Followed(capsys, "M")
    followed.add(0, FRAMES.content("x", "carol"))
    assert followed.poll() == ["message  M", "channel  town", "A        carol"]
    followed.add(3 * SECOND, FRAMES.content("M", "alice", 1000))
    begins, _, sent = followed.poll()[3:]
    assert begins == "begins   2025-06-15T15:06:43.000Z, the time 0 of this trace"
    assert sent == "+0.000 s ·B B: sent [tap]"
    followed.add(1 * SECOND, FRAMES.content("y", "carol", 1001, history=["M"]))
    earlier, *_ = followed.poll()
    assert earlier == "-2.000 s A· A: its causal history names the message [tap]"


UNFINISHED = "capture gap whose end is not known yet: it may have missed records"


def test_begin_and_end_of_a_silence_are_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While the tap is silent, polls print nothing about it."""
    followed = Followed(capsys, "M")
    followed.add(0, FRAMES.content("M", "alice"))
    followed.add(100, FRAMES.content("q", "zoe"), "second")
    followed.poll()
    gaps = [_gaps(followed, at) for at in range(10, 101, 10)]
    assert gaps == [[], [f"+0.100 s ··· {UNFINISHED}"], *[[]] * 8]
    followed.add(105 * SECOND, FRAMES.content("r", "zoe", 2_000), "second")
    gaps = [_gaps(followed, at) for at in range(110, 181, 10)]
    assert [one for one in gaps if one] == [
        # The tap is silent again.
        [f"+0:01:45 ··· {UNFINISHED}"],
        ["+0.100 s ··· capture gap of 105 s: it may have missed records [second]"],
    ]


def test_begin_and_end_of_a_loss_are_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While the tap loses every second record, no poll prints the grown gap."""
    followed = Followed(capsys, "M")
    followed.add(0, FRAMES.content("M", "alice"), seq=0)
    gaps = []
    for second in range(1, 200):
        seq = 2 * second if second < 100 else 100 + second
        gaps += _gaps(followed, second, seq)
    assert gaps == [
        f"+0.000 s ·· {UNFINISHED}",
        "+0.000 s ·· capture gap of 115 s: it may have missed records [tap]",
    ]


def _gaps(followed: Followed, second: int, seq: int | None = None) -> list[str]:
    """Return the lines about capture gaps that one more frame of bob prints."""
    frame = FRAMES.content(f"n{second}", "bob", 1_000 + second)
    followed.add(second * SECOND, frame, seq=seq)
    return [one for one in followed.poll() if "capture gap" in one]


def test_the_last_filter_that_lacks_the_message_is_printed_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each frame of a participant that lacks the message has a new last one."""
    followed = Followed(capsys, "M")
    followed.add(0, FRAMES.content("M", "alice"))
    lines = []
    for second in range(1, 10):
        followed.add(second * SECOND, FRAMES.content(f"n{second}", "bob", holds=[]))
        lines += [one for one in followed.poll() if "lacks" in one]
    assert lines == ["+1.000 s ·B B: its filter lacks the message [tap]"]
    last, *_ = followed.end()
    assert last == "+9.000 s ·B B: its last filter so far that lacks the message"


def test_text_of_several_messages_names_each_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before steps of later polls and conclusions, if another's text came before."""
    followed = Followed(capsys, "M", "N")
    followed.add(0, FRAMES.content("M", "alice"))
    followed.add(1 * SECOND, FRAMES.content("N", "bob", 1_001))
    assert _parts(followed.poll(), ": sent [tap]") == [
        "message  M",
        "+0.000 s A· A: sent [tap]",
        "message  N",
        "+0.000 s A· A: sent [tap]",
    ]
    followed.add(2 * SECOND, FRAMES.content("c1", "carol", 1_002, history=["N"]))
    followed.add(3 * SECOND, FRAMES.content("d1", "dave", 1_003, history=["M"]))
    assert _parts(followed.poll(), "names the message [tap]") == [
        "message  M",
        "+3.000 s ···D D: its causal history names the message [tap]",
        "message  N",
        "+1.000 s ··C· C: its causal history names the message [tap]",
    ]
    assert [one.split()[-1] for one in _parts(followed.end(), "no such text")] == [
        "M",
        "N",
    ]


def _parts(lines: list[str], text: str) -> list[str]:
    """Return the lines that name a message, and the lines that contain a text."""
    return [one for one in lines if one.startswith("message ") or text in one]


@pytest.mark.parametrize("anonymise", [False, True])
def test_json_is_printed_again_after_a_change_of_a_participant(
    capsys: pytest.CaptureFixture[str], anonymise: bool
) -> None:
    """With names and without; a poll that changes only `read` prints nothing."""
    followed = Followed(capsys, "M", form=TraceForm.JSON, anonymise=anonymise)
    followed.add(0, FRAMES.content("M", "alice"))
    followed.add(1 * SECOND, FRAMES.content("b1", "bob", 1_001, history=["M"]))
    named = [_named(followed)]
    followed.add(2 * SECOND, FRAMES.content("b2", "bob", 1_002, history=["M"]))
    named += [_named(followed), _named(followed)]
    assert named == [[0, 1], [0, 2], []]


def _named(followed: Followed) -> list[int]:
    """Return how often each participant has named M in the JSON that a poll prints."""
    return [
        person["named"]
        for line in followed.poll()
        for person in json.loads(line)["participants"]
    ]
