"""Renders a report as one HTML page that loads no other files and has no script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from connectors.web.blocks import Report, pictured
from connectors.web.pages.layout import page_environment

_STATIC = Path(__file__).parent / "static"
_SHEETS = ("base", "tables", "charts", "report")


def report_html(report: Report) -> str:
    """Return the report as a whole HTML page, with its stylesheets."""
    sheets = [(_STATIC / f"{name}.css").read_text("utf-8") for name in _SHEETS]
    return (
        page_environment()
        .get_template("report.html")
        .render(
            report=report,
            pictured=pictured,
            # The stylesheets are part of this package, so they need no escaping.
            style=Markup("\n".join(sheets)),  # noqa: S704
        )
    )
