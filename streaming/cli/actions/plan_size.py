"""Prints what the monitor needs for a load, and how far the model can be trusted."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec
from rich.console import Console
from rich.table import Table

from sds_core.planning.load import Load
from sds_core.planning.measured import NotMeasured, Performance, Scaling
from sds_core.planning.size import CostModel, Limit, Size
from sds_core.text import byte_size, counted, number
from streaming.cli.output import print_json

_Kind = TypeVar("_Kind", Performance, Scaling)


class Request(NamedTuple):
    """What is asked; None for the mean size of measured frames with filters."""

    channels: int
    participants: int
    messages_per_s: float
    hours: float
    frame_bytes: float | None
    trigger_s: float
    history_days: int


def print_size(
    request: Request, performance: Path | None, scaling: Path | None, as_json: bool
) -> None:
    """Print what the monitor needs.

    Args:
        request: The load.
        performance: Figures of `make bench`; None for those of this release.
        scaling: Figures of the other benchmarks; None for those of this release.
        as_json: Whether to print JSON.

    Raises:
        click.UsageError: A file of figures is invalid or lacks a measure.
    """
    measured = _read(performance, "performance.json", Performance)
    beside = _read(scaling, "scaling.json", Scaling)
    try:
        model = CostModel(measured, beside)
        frame_bytes = request.frame_bytes or measured.data_set("big")[2]
    except NotMeasured as error:
        raise click.UsageError(str(error)) from error
    load = Load(
        request.channels,
        request.participants,
        request.messages_per_s,
        request.hours,
        frame_bytes,
        request.trigger_s,
    )
    size = model.size(load, history_days=request.history_days)
    if as_json:
        print_json(_document(model, load, size, request.history_days, measured))
    else:
        _print_table(model, load, size, request.history_days, measured)


def _read(path: Path | None, name: str, kind: type[_Kind]) -> _Kind:
    source = path or files("streaming.cli.measured") / name
    try:
        return msgspec.json.decode(source.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"{path or name} is no file of the benchmarks: {error}"
        raise click.UsageError(message) from error


def _errors(model: CostModel) -> dict[str, dict[str, float]]:
    return {
        name: {"greatest": _rounded(fit.error), "typical": _rounded(fit.typical_error)}
        for name, fit in model.fits.items()
    }


def _document(
    model: CostModel, load: Load, size: Size, history_days: int, measured: Performance
) -> dict[str, Any]:
    request = {
        "channels": load.channels,
        "participants": load.participants,
        "messages_per_second": load.frames_per_s,
        "memory_hours": load.hours,
        "frame_bytes": load.frame_bytes,
        "trigger_seconds": load.trigger_s,
        "history_days": history_days,
    }
    needs = {
        name: _rounded(value) if isinstance(value, float) else value
        for name, value in size._asdict().items()
        if name != "limits"
    }
    limits = [
        {
            "cores": limit.cores if math.isfinite(limit.cores) else None,
            "channels": limit.channels,
            "messages_per_second": _rounded(limit.frames_per_s),
        }
        for limit in size.limits
    ]
    return {
        "schema": 1,
        "request": request,
        "needs": needs,
        "limits": limits,
        "errors": _errors(model),
        "extrapolated": model.extrapolated(load),
        "measured": {
            "version": measured.version,
            "date": measured.date,
            "machine": measured.machine,
        },
    }


def _print_table(
    model: CostModel, load: Load, size: Size, history_days: int, measured: Performance
) -> None:
    errors = {name: f"{fit.error:.0%}" for name, fit in model.fits.items()}
    disk = "one channel measured"
    cores = counted(model.measured_cores, "core")
    rows = (
        ("CPU, busy cores", f"{size.cpu_cores:.2g}", errors["cpu"]),
        (
            f"batch on {cores}",
            f"{size.batch_s:.2g} s",
            errors["batch"],
        ),
        ("memory of all processes", byte_size(size.memory_bytes), errors["memory"]),
        ("state of a channel", byte_size(size.channel_state_bytes), errors["state"]),
        ("state of all channels", byte_size(size.state_bytes), errors["state"]),
        ("written a second", byte_size(size.written_bytes_per_s), errors["written"]),
        ("checkpoint", byte_size(size.checkpoint_bytes), errors["checkpoint"]),
        (f"history, {history_days} days", byte_size(size.history_bytes), disk),
        ("ledger, a day of waiting", byte_size(size.ledger_bytes_per_day), disk),
        ("disk, these three", byte_size(size.disk_bytes), ""),
    )
    console = Console()
    title = (
        f"{counted(int(load.channels), 'channel')} of {number(int(load.participants))} "
        f"participants, {load.frames_per_s:,g} messages/s of "
        f"{byte_size(load.frame_bytes)}, {load.hours:g} h of memory, a batch each "
        f"{load.trigger_s:g} s"
    )
    console.print(title, style="bold", soft_wrap=True, highlight=False)
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("")
    for heading in ("needs", "error, at most"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    lines = [*_limits(model, size), _source(measured)]
    if beyond := model.extrapolated(load):
        lines.append(f"Extrapolated: more than was measured of {', '.join(beyond)}.")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def _limits(model: CostModel, size: Size) -> list[str]:
    here, any_number = size.limits
    followed = (
        f"At this traffic per channel, a machine with {model.measured_cores} cores "
        f"follows {_followed(here)}; with any number of cores {_followed(any_number)} "
        "(extrapolated)."
    )
    if (cores := size.machine_cores) is None:
        return [
            "One machine: no number of cores is enough for these batches "
            "(extrapolated).",
            followed,
            "Cluster: no number of executors is enough, because the driver's share "
            "of a batch is as long (extrapolated). Give a longer --trigger, or split "
            "the traffic into topics with a monitor each.",
        ]
    if cores == 1:
        return ["One machine: 1 core suffices.", followed, "Cluster: not needed."]
    if cores <= model.measured_cores:
        return [
            f"One machine: {cores} cores suffice.",
            followed,
            "Cluster: not needed.",
        ]
    executors = counted(size.executors, "executor")
    return [
        f"One machine: {number(cores)} cores suffice (extrapolated).",
        followed,
        f"Cluster, if no machine has {number(cores)} cores: {executors} of one core "
        f"and {byte_size(size.executor_memory_bytes)} beside the driver, extrapolated "
        f"from {model.measured_executors}.",
    ]


def _followed(limit: Limit) -> str:
    rate = f"{float(f'{limit.frames_per_s:.3g}'):,.12g}"
    return f"{number(limit.channels)} channels with {rate} messages/s"


def _source(measured: Performance) -> str:
    return (
        f"Measured: sds-monitor {measured.version}, {measured.date}, "
        f"{measured.machine}."
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
