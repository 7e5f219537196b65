"""Prints the resources that the monitor needs for a load, and the model's errors."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console

from connectors.untrusted_json import UNREADABLE
from sds_core.planning.document import rounded
from sds_core.planning.measured import NotMeasured, Performance, Scaling
from sds_core.planning.size import CostModel, Limit, Load, Size
from sds_core.text import byte_size, counted, number
from streaming.cli.exit_codes import wrong_use
from streaming.cli.output import print_json, write_page
from streaming.cli.tables import print_line, print_table

_Kind = TypeVar("_Kind", Performance, Scaling)

_HEADINGS = ("what", "needs", "error, at most")

_ONE_CHANNEL = "one channel measured"
_NO_CLUSTER = "Cluster: not needed."
_TOO_LONG = (
    "One machine: no number of cores is enough for these batches (extrapolated).",
    "Cluster: no number of executors is enough, because the driver's share of a batch "
    "is as long (extrapolated). Give a longer --trigger, or split the traffic into "
    "topics with a monitor each.",
)


def print_size(
    history_days: int,
    performance: Path | None,
    scaling: Path | None,
    as_json: bool,
    html: Path | None,
    **traffic: Any,
) -> None:
    """Print the resources that the monitor needs for a load.

    `traffic` has a value for each field of `Load`. If `frame_bytes` is None, the
    measured mean is used. If `performance` or `scaling` is None, the measurements of
    this release are used.

    Raises:
        click.UsageError: The file `performance` or `scaling` is invalid or lacks a
            measurement, or the page cannot be written.
    """
    measured = _read(performance, "performance.json", Performance)
    with wrong_use(NotMeasured):
        model = CostModel(measured, _read(scaling, "scaling.json", Scaling))
        usual_bytes = measured.data_set("big")[2]
    load = Load(**traffic | {"frame_bytes": traffic["frame_bytes"] or usual_bytes})
    size = model.size(load, history_days=history_days)
    title, rows = _title(load), _rows(model, size, history_days)
    lines = [
        *_limits(model, size),
        f"Measured: sds-monitor {measured.version}, {measured.date}, "
        f"{measured.machine}.",
    ]
    if beyond := model.extrapolated(load):
        lines.append(f"Extrapolated: more than was measured of {', '.join(beyond)}.")
    if html is not None:
        # This import loads jinja and pygal, which tables do not need.
        from streaming.cli.actions.plan_report import size_report

        report = size_report(model, load, history_days, title, _HEADINGS, rows, lines)
        write_page(report, html)
    if as_json:
        print_json(_document(model, load, size, history_days, measured))
        return
    console = Console()
    print_line(console, title, "bold")
    print_table(console, ("", *_HEADINGS[1:]), rows)
    for line in lines:
        click.echo(line)


def _read(path: Path | None, name: str, kind: type[_Kind]) -> _Kind:
    source = path or files("streaming.cli.measured") / name
    where = f"{path or name} is not a file of the benchmarks: "
    with wrong_use(OSError, *UNREADABLE, where=where):
        return msgspec.json.decode(source.read_bytes(), type=kind)


def _document(
    model: CostModel, load: Load, size: Size, history_days: int, measured: Performance
) -> dict[str, Any]:
    return {
        "schema": 1,
        "request": {
            "channels": load.channels,
            "participants": load.participants,
            "messages_per_second": load.frames_per_s,
            "memory_hours": load.hours,
            "frame_bytes": load.frame_bytes,
            "trigger_seconds": load.trigger_s,
            "history_days": history_days,
        },
        "needs": {name: _number(value) for name, value in size.needs.items()},
        "limits": [
            {
                "cores": _number(limit.cores),
                "channels": limit.channels,
                "messages_per_second": _number(limit.frames_per_s),
            }
            for limit in size.limits
        ],
        "errors": {
            name: {"greatest": _number(f.error), "typical": _number(f.typical_error)}
            for name, f in model.fits.items()
        },
        "extrapolated": model.extrapolated(load),
        "measured": {
            name: getattr(measured, name) for name in ("version", "date", "machine")
        },
    }


def _rows(model: CostModel, size: Size, history_days: int) -> list[tuple[str, ...]]:
    """Return each resource, the needed amount, and the model's maximum error."""
    errors = {name: f"{fit.error:.0%}" for name, fit in model.fits.items()}
    cores = counted(model.measured_cores, "core")
    needs = size.needs
    rows = (
        ("CPU, busy cores", f"{needs['cpu_cores']:.2g}", errors["cpu"]),
        (f"batch on {cores}", f"{needs['batch_s']:.2g} s", errors["batch"]),
        ("memory of all processes", needs["memory_bytes"], errors["memory"]),
        ("state of a channel", needs["channel_state_bytes"], errors["state"]),
        ("state of all channels", needs["state_bytes"], errors["state"]),
        ("written a second", needs["written_bytes_per_s"], errors["written"]),
        ("checkpoint", needs["checkpoint_bytes"], errors["checkpoint"]),
        (f"history, {history_days} days", needs["history_bytes"], _ONE_CHANNEL),
        ("ledger, a day of waiting", needs["ledger_bytes_per_day"], _ONE_CHANNEL),
        ("disk, these three", needs["disk_bytes"], ""),
    )
    return [
        (word, need if isinstance(need, str) else byte_size(need), error)
        for word, need, error in rows
    ]


def _title(load: Load) -> str:
    return (
        f"{counted(int(load.channels), 'channel')} of {number(int(load.participants))} "
        f"participants, {load.frames_per_s:,g} messages/s of "
        f"{byte_size(load.frame_bytes)}, {load.hours:g} h of memory, a batch each "
        f"{load.trigger_s:g} s"
    )


def _limits(model: CostModel, size: Size) -> list[str]:
    here, any_cores = map(_followed, size.limits)
    followed = (
        f"At this traffic per channel, a machine with {model.measured_cores} cores "
        f"follows {here}; with any number of cores {any_cores} (extrapolated)."
    )
    if (cores := size.needs["machine_cores"]) is None:
        machine, cluster = _TOO_LONG
    elif cores <= model.measured_cores:
        suffice = "1 core suffices" if cores == 1 else f"{cores} cores suffice"
        machine, cluster = f"One machine: {suffice}.", _NO_CLUSTER
    else:
        machine = f"One machine: {number(cores)} cores suffice (extrapolated)."
        cluster = (
            f"Cluster, if no machine has {number(cores)} cores: "
            f"{counted(size.needs['executors'], 'executor')} of one core and "
            f"{byte_size(size.needs['executor_memory_bytes'])} beside the driver, "
            f"extrapolated from {model.measured_executors}."
        )
    return [machine, followed, cluster]


def _followed(limit: Limit) -> str:
    rate = f"{float(f'{limit.frames_per_s:.3g}'):,.12g}"
    return f"{number(limit.channels)} channels with {rate} messages/s"


def _number(value: float | None) -> float | None:
    return rounded(value, 4) if isinstance(value, float) else value
