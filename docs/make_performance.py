"""Makes docs/performance.md from docs/performance.json: python -m docs.make_performance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from benchmarks.goals import cells
from benchmarks.results import Measure, Run, read_run
from benchmarks.rows import drain

PAGE = Path(__file__).with_name("performance.md")

_HEAD = """\
# Performance

How fast is the job, beside other ways to read the same topic, and what does it cost when there is little to do?

`make bench` measures everything on this page in one run and makes the page anew; do not edit it by hand.
It takes about half an hour on two idle cores, and longer the first time, when it makes the data; `make bench BENCH_OPTIONS=--quick` takes about ten minutes.
`make bench BENCH_OPTIONS="--only age"` measures one row, prints it and writes nothing.
"""

_METHOD = """\
## How it is measured

- **Limits first:** broker, job and the program that measures share the machine; nothing is encrypted or compressed, and there is one broker.
- **Data** comes from this project's own participants with the options of js-waku's `@waku/sds`, from fixed seeds.
  *Big* frames have a filter of 18.7 kB and up to 40 history entries; *small* ones have up to 3 entries, and their filter was removed; *mix* is both in one topic.
  No message id occurs in two channels.
- **Repetitions** run all contenders in turns; the tables show the median and, in brackets, the least and the greatest value.
  A ratio is the median of the ratios of each repetition.
- **Warm batches:** all Spark jobs read the topic in eight batches of equal size, and the first two are left out: from the end of the second to the end of the last, by the times of Spark's files of commits.
  Single processes start at once, so all of their time counts.
- **Processor time** is that of all processes of a contender, without the broker's.
- **Age** is that of the oldest frame that was written to Kafka and is not yet in the figures at `/metrics`, each tenth of a second, and 0 if there is none.
  The job runs with `--label-budget 10`, because its page is read 150 times as often as by Prometheus.
- **Memory** counts pages that processes share once.
- **A channel** is measured in one process, by processor time: the state is read, one new frame is applied, the state is packed again.

| contender | what it does |
|---|---|
| this job | everything, with checkpoint |
| obvious Spark job | Spark's own Kafka source, one row per message, a state that only counts |
| the same with a digest per channel | one row per channel and batch of Arrow instead |
| one process, naive | protobuf and a dictionary of channels: ids, acknowledgements by history, missing ids; no filters, deadlines, repair, taps, restart |
| one process, same semantics | our digests and views without Spark, in memory; its report must equal the job's, or its time does not count |
| raw read | reads and drops |

Each contender is a short file in `benchmarks/contenders/`.
"""


def page(run: Run) -> str:
    """Return the page."""
    parts = [_HEAD, _about(run), _goals(run), _METHOD, _drains(run), *_others(run)]
    if run.problems:
        lines = "\n".join(f"- `{row}`: {why}" for row, why in run.problems.items())
        parts.append(f"## Rows that failed\n\n{lines}\n")
    return "\n".join(parts)


def make_page() -> None:
    """Write the page."""
    PAGE.write_text(page(read_run()), encoding="utf-8")


def _about(run: Run) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run.versions.items())
    lines = [
        f"sds-monitor {run.version}, {run.date}, {run.minutes:g} minutes.",
        f"{run.machine}; load before the run {run.load:g}.",
        f"{versions}.",
    ]
    lines += [f"Data set *{name}*: {words}." for name, words in run.data.items()]
    if run.is_quick:
        lines.insert(
            0,
            "**These figures are from the short form: less data, one repetition. "
            "They show that the run works, not how fast the job is.**",
        )
    if run.load > 0.5:
        lines.append("**Other programs ran on the machine.**")
    return "\n".join(lines) + "\n"


def _goals(run: Run) -> str:
    lines = ["## Goals", "", "On two cores.", ""]
    lines += _table(("what", "goal", "aim", "this run", ""), cells(run))
    return "\n".join(lines) + "\n"


def _drains(run: Run) -> str:
    """Return the contenders, by data set, with the ratio of the job to each."""
    lines = ["## Reading a topic that holds everything already", ""]
    names = [measure.row for measure in run.measures]
    for row in dict.fromkeys(names):
        if not row.startswith("drain ") or "processor" in row:
            continue
        lines += [f"*{row.removeprefix('drain ').capitalize()}*:", ""]
        lines += _table(
            ("contender", "records/s", "this job", "processor, µs", "this job"),
            _contenders(run, row),
        )
        lines.append("")
    return "\n".join(lines)


def _contenders(run: Run, row: str) -> Iterator[tuple[str, ...]]:
    by_cpu = f"{row}, processor"
    spent = {one.what: one for one in run.measures if one.row == by_cpu}
    for one in run.measures:
        if one.row == row:
            ratio = run.ratio(row, drain.JOB, one.what) or 0.0
            cpu_ratio = run.ratio(by_cpu, one.what, drain.JOB) or 0.0
            yield (
                one.what,
                _value(one),
                f"{ratio:.2f}x",
                _value(spent[one.what]),
                f"{cpu_ratio:.2f}x",
            )


def _others(run: Run) -> Iterator[str]:
    rest = [one for one in run.measures if not one.row.startswith("drain ")]
    rest.sort(key=lambda one: one.row)
    for row, measures in groupby(rest, key=lambda one: one.row):
        lines = [f"## {row[0].upper()}{row[1:]}", ""]
        cells = ((one.what, f"{_value(one)} {one.unit}") for one in measures)
        yield "\n".join([*lines, *_table(("what", "measured"), cells), ""])


def _value(measure: Measure) -> str:
    """Return the median, and the spread if there are several values."""
    text = _number(measure.median)
    if len(measure.values) > 1:
        text += f" ({_number(min(measure.values))} to {_number(max(measure.values))})"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return lines


if __name__ == "__main__":
    make_page()
