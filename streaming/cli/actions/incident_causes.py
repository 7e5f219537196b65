"""Prints the likely causes of incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from sds_core.text import printable
from streaming.cli.actions.incident_sources import Cause


def print_causes(causes: Mapping[str, Sequence[Cause]]) -> None:
    """Print likely causes by channel, one line each."""
    for channel, some in causes.items():
        for one in some:
            sentence = printable(one.sentence)
            click.echo(f"likely cause; channel {printable(channel)}; {sentence}")
