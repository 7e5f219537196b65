"""The benchmarks: what they compare is comparable, and the page has their figures."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.__main__ import added
from benchmarks.contenders.naive import Channel
from benchmarks.contenders.same_semantics import Observer
from benchmarks.data import Shape, as_read, mix, simulated_shard
from benchmarks.disturbance import share_of_others
from benchmarks.goals import GOALS, Goal
from benchmarks.goals import cells as cells_of
from benchmarks.guard import FACTOR, RATIOS, ROW, compared
from benchmarks.processes import Commit, ContenderFailed, warm
from benchmarks.results import Disturbed, Run, publish, quantile, read_run
from benchmarks.rows import drain
from benchmarks.topics import at_rate
from docs import make_performance
from sds_core.observer.report import build_report
from sds_core.wire import decode
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage
from tests.support.monitor import report_of

SHAPE = Shape("few", 3, 20, history=40, has_filter=True)


def run() -> Run:
    """A run without measures."""
    return Run("0", "2026-11-22", 1.0, True, "machine", 0.0, {})


def test_page_has_the_figures_of_the_file() -> None:
    """After a change run ``python -m docs.make_performance``."""
    assert make_performance.PART.current() == make_performance.block(read_run())


def test_guarded_ratios_are_in_the_file() -> None:
    """Otherwise nothing would be compared."""
    assert all(read_run().median(ROW, name) for name in RATIOS)


def test_ratio_that_grew_is_named() -> None:
    """One that stayed about the same is not."""
    known = run()
    known.add(ROW, "slow", "x", 3.0)
    known.add(ROW, "same", "x", 3.0)
    lines = dict(compared(known, {"slow": 3.1 * FACTOR, "same": 2.9 * FACTOR}))
    assert [line for line, fell in lines.items() if fell] == [
        "slow: 6.2, allowed 2 x 3: SLOWER"
    ]


def test_first_batches_do_not_count() -> None:
    """Nor do batches without records; time counts from the last that is left out."""
    commits = [
        Commit(0.0, 10.0, 5.0, 100),
        Commit(10.0, 12.0, 6.0, 200),
        Commit(12.0, 12.5, 6.1, 200),
        Commit(12.5, 13.5, 7.0, 300),
        Commit(13.5, 14.0, 8.0, 400),
    ]
    assert warm(commits, 2) == (200, 2.0, 2.0)


def test_too_few_batches_are_an_error() -> None:
    """A rate of the first batches would say little."""
    with pytest.raises(ContenderFailed, match="only 1 batches"):
        warm([Commit(0.0, 1.0, 1.0, 100)], 2)


def test_ratio_is_taken_within_each_repetition() -> None:
    """A machine that was slow in one repetition was so for both."""
    known = run()
    for ours, theirs in ((10.0, 5.0), (1.0, 0.5), (9.0, 3.0)):
        known.add("row", "ours", "s", ours)
        known.add("row", "theirs", "s", theirs)
    assert known.ratios("row", "ours", "theirs") == [2.0, 2.0, 3.0]


def test_percentile_of_few_values_is_one_of_them() -> None:
    """The least that is not below the percentage."""
    assert [quantile(range(1, 101), percent) for percent in (50, 95)] == [51, 96]
    assert quantile([7.0], 99) == 7.0


def test_goal_says_by_how_much_it_is_missed() -> None:
    """By the measures of the run, with their range, and why."""
    known = run()
    for ours, theirs in ((10.0, 20.0), (10.0, 18.0), (11.0, 20.9)):
        known.add(drain.cpu("big"), drain.JOB, "µs/record", ours)
        known.add(drain.cpu("big"), drain.FIGURES, "µs/record", theirs)
        known.add(drain.cpu("big"), drain.COUNTS, "µs/record", 3 * theirs)
    rows = {name: cells for name, *cells in cells_of(known)}
    assert len(rows) == len(GOALS)
    missed = rows[
        "big frames: CPU time of the Spark job with three figures, "
        "divided by that of this job"
    ]
    assert missed[:4] == [
        "1.9 x (1.8 to 2)",
        "2.4 x",
        "2.8 x",
        "missed: 0.79 x the goal",
    ]
    assert missed[4]
    counts = rows[
        "big frames: CPU time of the Spark job that only counts, "
        "divided by that of this job"
    ]
    assert counts[3:] == ["met", ""]
    assert (
        rows["open a state, apply one frame, close the state: 20,000 messages"][3]
        == "not measured"
    )


def test_goal_of_few_is_missed_by_what_is_too_much() -> None:
    """Seconds are to be few, ratios great."""
    goal = Goal("age", lambda _: [1.5], 1.2, None, "s")
    assert goal.outcome(1.5) == "missed: 1.2 x the goal"
    assert goal.outcome(1.2) == "met"


def test_disturbed_run_is_not_published() -> None:
    """The message names the rows and the command that measures them again."""
    disturbed = run()
    disturbed.disturbed["age"] = 0.31
    with pytest.raises(Disturbed, match=r"age 31%\..*benchmarks --only age --add"):
        publish(disturbed)


def test_row_that_is_measured_again_replaces_the_disturbed_one() -> None:
    """It is published once no row is disturbed any more."""
    last, again = run(), run()
    last.add("drain big", drain.JOB, "records/s", 1.0)
    last.add("age on /metrics", "p95", "s", 9.0)
    last.disturbed |= {"age": 0.31, "floor": 0.2}
    again.add("age on /metrics", "p95", "s", 1.0)
    found = added(last, again, ["age"])
    assert found.median("age on /metrics", "p95") == 1.0
    assert found.median("drain big", drain.JOB) == 1.0
    assert found.disturbed == {"floor": 0.2}
    assert found.apart == ["age"]


def test_row_that_failed_again_replaces_nothing() -> None:
    """Nor is the run published, while the row that is there was disturbed."""
    last, again = run(), run()
    last.add("age on /metrics", "p95", "s", 9.0)
    last.disturbed["age"] = 0.31
    again.problems["age"] = "ContenderFailed"
    found = added(last, again, ["age"])
    assert found.median("age on /metrics", "p95") == 9.0
    assert found.disturbed == {"age": 0.31}


def test_cpu_time_of_other_programs_is_what_is_left() -> None:
    """Of two cores for ten seconds, 6 s were ours, and 4 s of another program."""
    assert share_of_others(busy_s=10.0, ours_s=6.0, cores_s=20.0) == 0.2
    # The counters of the machine and of processes are not read at the same moment.
    assert share_of_others(busy_s=5.9, ours_s=6.0, cores_s=20.0) == 0.0


def test_cpu_time_of_workers_is_ours() -> None:
    """Spark's daemon ignores SIGCHLD: the kernel drops the times of its workers."""
    worker = "import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(1)"
    daemon = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {worker!r}])\n"
        "time.sleep(3)"
    )
    measure = (
        "import subprocess, sys, time\n"
        "from benchmarks.disturbance import Usage, adopt_orphans\n"
        "adopt_orphans()\n"
        "usage = Usage()\n"
        "usage.begin()\n"
        f"daemon = subprocess.Popen([sys.executable, '-c', {daemon!r}])\n"
        "while daemon.poll() is None: usage.look(); time.sleep(0.1)\n"
        "sys.exit(usage.seconds < 0.5)\n"
    )
    subprocess.run([sys.executable, "-c", measure], check=True, timeout=60)


def test_mix_has_as_many_messages_in_each_class_of_channels() -> None:
    """And channels as many as the traffic needs."""
    for per_second in (10, 1_000):
        rates = [shape.channels / shape.interval_s for shape in mix(per_second)]
        assert len(rates) == 6
        assert set(rates) == {per_second / 20}
        assert sum(shape.channels for shape in mix(per_second)) == 6.2 * per_second


def test_same_seed_makes_the_same_records_without_shared_ids() -> None:
    """Caches are not flattered by an id that many channels have."""
    records = list(simulated_shard(SHAPE, 0))
    assert records == list(simulated_shard(SHAPE, 0))
    channels: dict[str, set[str]] = {}
    for record in records:
        if record.value:
            frame = decode(record.value)
            channels.setdefault(frame.channel_id, set()).add(frame.message_id)
    assert len(channels) == SHAPE.channels
    assert sum(map(len, channels.values())) == len(set().union(*channels.values()))


def test_contender_of_the_same_semantics_finds_what_the_monitor_finds() -> None:
    """Its report is that of the monitor."""
    records = list(simulated_shard(SHAPE, 0))
    observer = Observer(1 << 62, {record.partition for record in records})
    observer.read(list(as_read(records)))
    report, expected = build_report(observer.finish(), 0), report_of(records)
    assert report["totals"]["messages"] > 0
    assert report["channels"] == expected["channels"]
    assert report["totals"] == expected["totals"]


def test_naive_contender_counts_messages_and_acknowledgements() -> None:
    """It does some real work."""
    channel = Channel()
    for record in simulated_shard(SHAPE, 0):
        if record.value:
            channel.add(SdsMessage.FromString(record.value))
    assert channel.messages
    assert channel.acknowledged


def test_feed_is_due_at_its_rate_and_beats_for_every_partition() -> None:
    """A partition without frames would hold back the batch."""
    timed = list(at_rate(simulated_shard(SHAPE, 0), 10.0))
    frames = [due_s for due_s, record in timed if record.value]
    assert frames == [number / 10.0 for number in range(len(frames))]
    beats = [record.partition for _, record in timed if not record.value]
    assert set(beats) == {0, 1, 2, 3}
