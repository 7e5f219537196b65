"""The drawing of the packages in docs/architecture.md."""

from __future__ import annotations

from docs import make_packages


def test_drawing_in_the_page_is_current() -> None:
    """After a change of the contracts run ``python -m docs.make_packages``."""
    assert make_packages.PART.current() == make_packages.block()


def test_package_with_a_contract_of_its_own_is_a_box_of_layers() -> None:
    """Arrows go from each layer to the next one, and from package to package."""
    contracts = [[("top",), ("left", "right")], [("top.a", "top.b"), ("top.c",)]]
    assert make_packages.diagram(contracts).splitlines() == [
        "flowchart TB",
        "  subgraph top",
        '    top.0["a<br/>b"]',
        '    top.1["c"]',
        "    top.0 --> top.1",
        "  end",
        '  left["left"]',
        '  right["right"]',
        "  top --> left",
        "  top --> right",
    ]
