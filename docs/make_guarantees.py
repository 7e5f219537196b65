"""Writes into docs/guarantees.md the longest runs, and whether its tests notice.

The runs are of `make chaos` and the fuzzers, the others of `make promise-mutation`.

``python -m docs.make_guarantees [FIGURES ...]``; without files, only the page is made
again from docs/guarantees.json. All these commands write such files.
"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from docs.make_promise_mutation import broken_promises, mutants, outcomes
from docs.page_part import PagePart, table

PART = PagePart("guarantees.md", "make_guarantees", "the longest runs")
RUNS = Path(__file__).with_name("guarantees.json")

_BROKEN = (
    "",
    "Each promise below has a list of tests. For each of these tests, "
    "`docs/promises.toml` has a change to the program that breaks the promise.",
    "`make promise-mutation` makes each change in a copy of the program, and then runs "
    "only the test that belongs to the change.",
    "A change counts as found if its test fails with the change, and passes without "
    "the change.",
    "",
)


class Chaos(msgspec.Struct, tag_field="command", tag="make chaos"):
    """Figures of a run of `make chaos`.

    Attributes:
        kills: Number of kills.
        by_victim: The same by what was killed.
        stops: Number of orderly stops of the broker.
        minutes: Length of the run.
        starts: Starts of the job.
        first_batch_s: Median time from a start to the first batch.
        records: Records in the topic.
        differences: Values that differed from those of the undisturbed job or the
            truth.
        seed: Seed of traffic and kills.
        jobs: Number of plays at once. The figures are the sums of all plays.
        version: Version of sds-monitor.
        date: Day of the run, ISO 8601.
    """

    kills: int
    by_victim: dict[str, int]
    stops: int
    minutes: float
    starts: int
    first_batch_s: float
    records: int
    differences: int
    seed: int
    jobs: int
    version: str
    date: str

    @property
    def length(self) -> float:
        """Measure by which runs are compared."""
        return self.kills

    @property
    def found(self) -> int:
        """Number of broken promises."""
        return self.differences

    def row(self) -> tuple[str, ...]:
        """Cells of the page's table."""
        victims = "; ".join(
            f"{victim}: {count}" for victim, count in self.by_victim.items()
        )
        size = (
            f"{self.kills:,} kills ({victims}). The broker was also shut down "
            f"cleanly {self.stops:,} times. The job started {self.starts:,} times; "
            f"the median time to the first batch was {self.first_batch_s:g} s. The "
            f"topic had {self.records:,} records"
        )
        run = f"`make chaos KILLS={self.kills} SEED={self.seed} JOBS={self.jobs}`"
        return run, f"{self.minutes:g} min", size, f"{self.differences} differences"


class Fuzz(msgspec.Struct, tag_field="command", tag="make fuzz", omit_defaults=True):
    """Figures of a run of `make fuzz`.

    Attributes:
        minutes, cpu_minutes: Length of the run, and the CPU time of all processes.
        inputs: Number of inputs.
        by_target: The same by decoder.
        findings: Number of defects found.
        seed: Seed of all inputs.
        version: Version of sds-monitor.
        date: Day of the run, ISO 8601.
        given_minutes: Value of the option --minutes; None in files up to 1.2.0.
    """

    minutes: float
    cpu_minutes: float
    inputs: int
    by_target: dict[str, int]
    findings: int
    seed: int
    version: str
    date: str
    given_minutes: float | None = None

    @property
    def length(self) -> float:
        """Measure by which runs are compared."""
        return self.inputs

    @property
    def found(self) -> int:
        """Number of broken promises."""
        return self.findings

    def row(self) -> tuple[str, ...]:
        """Cells of the page's table."""
        size = (
            f"{self.inputs:,} inputs for {len(self.by_target)} decoders in "
            f"{self.cpu_minutes:g} min of CPU time"
        )
        command = self.__struct_config__.tag
        given = self.given_minutes
        given = round(self.minutes) if given is None else given
        run = f"`{command} MINUTES={given:g} SEED={self.seed}`"
        return run, f"{self.minutes:g} min", size, f"{self.findings} findings"


class FuzzAsan(Fuzz, tag="make fuzz-asan"):
    """Figures of a run of `make fuzz-asan`: see `Fuzz`."""


Run = Chaos | Fuzz | FuzzAsan


class Runs(msgspec.Struct):
    """The largest run of each command; None before the first."""

    chaos: Chaos | None = None
    fuzz: Fuzz | None = None
    fuzz_asan: FuzzAsan | None = None

    def with_run(self, run: Run) -> Runs:
        """Return the same with a run, if it is longer than the one there.

        A run with findings is left out: they are to be mended first.
        """
        if run.found:
            return self
        name = _FIELDS[type(run)]
        known: Run | None = getattr(self, name)
        if known is not None and run.length <= known.length:
            return self
        return msgspec.structs.replace(self, **{name: run})


_FIELDS = {Chaos: "chaos", Fuzz: "fuzz", FuzzAsan: "fuzz_asan"}


def write_run(run: Run, path: Path) -> None:
    """Write the figures of a run; makes the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(run))


def read_run(path: Path) -> Run:
    """Read what `write_run` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def read_runs(path: Path = RUNS) -> Runs:
    """Read the largest runs so far."""
    return msgspec.json.decode(path.read_bytes(), type=Runs)


def block(runs: Runs) -> str:
    """Return the tables of runs and mutants with the marks around them."""
    heads = (
        "largest run without a finding",
        "duration",
        "size",
        "findings",
        "version, day",
    )
    rows = [
        (*run.row(), f"{run.version}, {run.date}")
        for run in (runs.chaos, runs.fuzz, runs.fuzz_asan)
        if run is not None
    ]
    lines = table(heads, rows)
    lines += [*_BROKEN, *broken_promises(mutants(), outcomes())]
    return "\n".join([PART.begin, *lines, PART.end])


@click.command()
@click.argument(
    "figures",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
def main(figures: tuple[Path, ...]) -> None:
    """Take the figures of runs if they are longer than those on the page."""
    runs = read_runs()
    for path in figures:
        runs = runs.with_run(read_run(path))
    RUNS.write_bytes(msgspec.json.format(msgspec.json.encode(runs), indent=1) + b"\n")
    PART.write(block(runs))


if __name__ == "__main__":
    main()
