"""Writes the trends of a soak into docs/soak.md, and draws its charts.

``python -m docs.make_soak artifacts/soak/soak.json``: the file that `make soak` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import click
import msgspec

from benchmarks.soak.trends import HEAD, MEASURES, Measure, Soak, rows
from connectors.web.charts import Chart, Series
from docs.page_part import PagePart, table
from docs.planning_charts import IMAGES, picture
from sds_core.observer.figures import Scale

PART = PagePart("soak.md", "make_soak", "the run")
_POINTS = 60
"""Of a line at most."""


def block(run: Soak) -> str:
    """Return the table of a run and its charts, with the marks around them."""
    minutes, warm_up = run.times_s[-1] / 60, run.warm_up_s / 60
    lines = [
        PART.begin,
        "",
        f"sds-monitor {run.version}, {run.date}, {run.machine}.",
        f"The command `.venv/bin/python -m benchmarks.soak --minutes {minutes:.0f} "
        f"--warm-up {warm_up:.0f} --seed {run.seed}` sent traffic for {minutes:,.0f} "
        f"minutes. The first {warm_up:,.0f} minutes do not count.",
        f"The monitor read {run.records:,} records. At the end, the monitor followed "
        f"{run.channels:,} channels and had forgotten {run.forgotten:,} channels. Of "
        f"{run.requests:,} requests, {len(run.failures):,} failed. The final figures "
        f"had {len(run.differences):,} differences from those of a job that read the "
        "whole topic after the run.",
        "",
        *table(HEAD, rows(run)),
        "",
        *(f"![{one.key}](images/{_file(one).name})" for one in _changing(run)),
        "",
        PART.end,
    ]
    return "\n".join(lines)


def drawn(run: Soak) -> Iterator[tuple[Path, str]]:
    """Yield file and content of the chart of each measure that changes."""
    times = _thinned(run.times_s)
    names = [f"{at_s / 60:.0f} min" for at_s in times]
    ticks = names[:: max(1, len(names) // 5)]
    for one in _changing(run):
        values = _thinned(run.samples[one.key])
        series = Series(one.key, values, [one.text(value) for value in values])
        chart = Chart(
            one.key, one.key, "", Scale.COUNT, names, ticks, [series], one.text
        )
        yield _file(one), picture(chart)


def _changing(run: Soak) -> list[Measure]:
    """Return the measures that are not the same in all samples."""
    return [one for one in MEASURES if len(set(run.samples[one.key])) > 1]


def _thinned(values: Sequence[float]) -> list[float]:
    """Return the medians of so many neighbours that at most `_POINTS` are left."""
    step = -(-len(values) // _POINTS)
    return [median(values[at : at + step]) for at in range(0, len(values), step)]


def _file(measure: Measure) -> Path:
    return IMAGES / f"soak-{measure.key.lower().replace(' ', '-')}.svg"


@click.command()
@click.argument("samples", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(samples: Path) -> None:
    """Write the page of a run."""
    run = msgspec.json.decode(samples.read_bytes(), type=Soak)
    if problems := run.problems():
        message = f"not published, because of {len(problems)} findings: {problems[0]}"
        raise click.ClickException(message)
    for path, content in drawn(run):
        path.write_text(content, encoding="utf-8")
    PART.write(block(run))


if __name__ == "__main__":
    main()
