"""Writes a report as one HTML file, which loads nothing and has no script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from connectors.web.blocks import Report, pictured
from connectors.web.pages.layout import page_environment

_STATIC = Path(__file__).parent / "static"
_SHEETS = ("base", "tables", "charts", "report")


def report_html(report: Report) -> str:
    """Return the whole page."""
    sheets = [(_STATIC / f"{name}.css").read_text("utf-8") for name in _SHEETS]
    return (
        page_environment()
        .get_template("report.html")
        .render(
            report=report,
            pictured=pictured,
            # The stylesheets are our own.
            style=Markup("\n".join(sheets)),  # noqa: S704
        )
    )
