"""Draws charts as SVG without styles or scripts; the page's stylesheet sets colours."""

from __future__ import annotations

import math
import sys
from typing import Any
from xml.etree.ElementTree import Element

import pygal
from markupsafe import Markup
from pygal import PluginImportFixer
from pygal.etree import etree
from pygal.style import Style

from connectors.web.charts import Chart, Series
from sds_core.observer.figures import Scale
from sds_core.observer.histogram import BUCKETS_MS

# Remove the import finder that pygal adds for its map plugins, which are not used here.
# Python has deprecated this kind of finder, so each later import would log a warning.
sys.meta_path[:] = [
    finder for finder in sys.meta_path if not isinstance(finder, PluginImportFixer)
]

# Without this call, pygal would use lxml if lxml is installed. It would then create
# elements of another type than `xml.etree`.
etree.to_etree()

_WIDTH, _HEIGHT = 640, 230
_LABELLED_SECONDS = [0.25, 1, 5, 20, 120, 600]


class _Lines(pygal.Line):  # type: ignore[misc]
    def line(self, series: Any, rescale: bool = False) -> None:
        """Draw a line, and behind the line a band that shows its forecast intervals."""
        spans = [
            (x, series.metadata[at]["span"])
            for at, (x, _) in enumerate(series.points)
            if "span" in (series.metadata.get(at) or {})
        ]
        if spans:
            outline = [(x, high) for x, (_, high) in spans]
            outline += [(x, low) for x, (low, _) in reversed(spans)]
            plot = self.svg.serie(series)["plot"]
            self.svg.line(
                plot, list(map(self.view, outline)), close=True, class_="band"
            )
        super().line(series, rescale)


def draw(chart: Chart) -> Markup:
    """Draw a chart as an `svg` element with a tooltip for each point."""
    kind = pygal.StackedBar if chart.scale is Scale.PARTS else _Lines
    picture = kind(
        css=[],
        js=[],
        no_prefix=True,
        disable_xml_declaration=True,
        classes=["chart"],
        style=Style(label_font_size=14, major_label_font_size=14),
        width=_WIDTH,
        height=_HEIGHT,
        margin=10,
        spacing=6,
        show_legend=False,
        allow_interruptions=True,
        dots_size=2,
        x_labels=list(chart.times),
        x_labels_major=list(chart.ticks),
        show_minor_x_labels=False,
        truncate_label=-1,
        **_y_axis(chart),
    )
    for series in chart.series:
        picture.add(
            series.name,
            _points(series),
            formatter=_text_of(series),
            show_dots=not series.is_limit,
        )
    picture.add_xml_filter(lambda root: _plain(root, chart))
    # `Markup` is safe, because pygal escapes all texts of the chart.
    return Markup(picture.render(is_unicode=True))  # noqa: S704


def _points(series: Series) -> list[Any]:
    spans = series.spans or [None] * len(series.values)
    return [
        value if span is None else {"value": value, "span": span}
        for value, span in zip(series.values, spans, strict=True)
    ]


def _y_axis(chart: Chart) -> dict[str, Any]:
    values = [v for series in chart.series for v in series.values if v is not None]
    values += [span[1] for series in chart.series for span in series.spans if span]
    match chart.scale:
        case Scale.SECONDS:
            return {
                "logarithmic": True,
                # The range is wider than the buckets, because pygal draws no label at
                # the edge of the range.
                "range": (0.9 * BUCKETS_MS[0] / 1000, 1.2 * BUCKETS_MS[-1] / 1000),
                "y_labels": _LABELLED_SECONDS,
                "value_formatter": lambda value: f"{value:g} s",
            }
        case Scale.PERCENT:
            # Choose the lower end of the axis by the least value, so that both a drop
            # by one percent and a drop to 0 are visible.
            step = _round_step(max(100 - min(values, default=100), 10))
            steps = max(math.ceil((100 - min(values, default=100)) / step), 2)
            return {
                "range": (100 - step * steps, 100),
                "y_labels": [100 - step * n for n in range(steps + 1)],
                "value_formatter": lambda value: f"{value:g} %",
            }
        case Scale.COUNT | Scale.PARTS:
            most = max(values, default=0)
            if chart.scale is Scale.PARTS:
                bars = zip(*(series.values for series in chart.series), strict=True)
                most = max((sum(v or 0 for v in bar) for bar in bars), default=0)
            step = _round_step(most)
            steps = max(math.ceil(most / step), 1)
            return {
                "range": (0, step * steps),
                "y_labels": [step * n for n in range(steps + 1)],
                "value_formatter": chart.unit,
            }


def _round_step(most: float) -> float:
    """Return a round step between axis labels; five steps or fewer reach `most`."""
    step = 1 if not 0 < most < 1 else 10.0 ** math.floor(math.log10(most) - 1)
    while True:
        for factor in (1, 2, 5):
            if step * factor * 5 >= most:
                return step * factor
        step *= 10


def _text_of(series: Series) -> Any:
    def text(value: float | None, index: int | None = None) -> str:
        return "" if index is None else f"{series.name}: {series.texts[index]}"

    return text


def _plain(root: Element, chart: Chart) -> Element:
    """Remove pygal's style, script, tooltip and comments; add titles and classes."""
    for child in list(root):
        if child.tag not in ("g", "title"):
            root.remove(child)
    graph = root.find("g")
    assert graph is not None  # noqa: S101 - pygal always makes one
    for part in list(graph):
        if "tooltip-overlay" in part.get("class", ""):
            graph.remove(part)
    for parent in list(root.iter()):
        for at, bar in enumerate(parent.findall("g[@class='bar']")):
            if float(bar[0].get("height", 0)) == 0:
                parent.remove(bar)
            elif chart.forecast_from is not None and at >= chart.forecast_from:
                bar.set("class", "bar forecast")
        texts = {desc.get("class"): desc for desc in parent.findall("desc")}
        for desc in texts.values():
            parent.remove(desc)
        if "value" in texts:
            hint = Element("title")
            hint.text = f"{texts['x_label'].text}  {texts['value'].text}"
            parent.insert(0, hint)
    for at, series in enumerate(chart.series):
        if series.is_limit:
            for part in root.iter():
                if f"serie-{at}" in part.get("class", "").split():
                    part.set("class", f"{part.get('class')} limit")
    del root.attrib["id"]
    root.set("role", "img")
    root.set("aria-label", chart.title)
    title = root.find("title")
    if title is not None:
        root.remove(title)
    return root
