"""The site of the documentation builds, and needs no other server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

README_WORDS = 900
ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "-q", "build", "--strict", "-d", out],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    """Neither scripts nor fonts nor images."""
    pages = sorted(site.rglob("*.html"))
    assert [page for page in pages if LOADED.search(page.read_text("utf-8"))] == []
    assert len(pages) > len(list(ROOT.glob("docs/*.md")))


def test_search_finds_runbooks_and_readme(site: Path) -> None:
    """Pages from outside `docs/` are in the index, and link within the site."""
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert {"", "runbooks/SdsMonitorDown/"} <= places
    overview = (site / "index.html").read_text("utf-8")
    assert 'href="install/"' in overview
    assert ".md" not in "".join(re.findall('href="([^"]*)"', overview))


def test_readme_is_short_and_names_the_version() -> None:
    """A reader finds a door within two minutes."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= README_WORDS
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    release = project["version"].rpartition(".")[0]
    assert f"**Version {release}, " in text


def test_link_out_of_the_site_becomes_a_path(site: Path) -> None:
    """A reader with a checkout can open it; a link within the site stays one."""
    page = (site / "alerts/index.html").read_text("utf-8")
    assert 'href="../runbooks/SdsMonitorDown/"' in page
    page = (site / "install/index.html").read_text("utf-8")
    assert "deploy/Dockerfile" in page
    assert "Dockerfile" not in "".join(re.findall('href="([^"]*)"', page))


def test_python_api_has_what_the_packages_export(site: Path) -> None:
    """Under the names that applications import, with their docstrings."""
    page = (site / "python-api/index.html").read_text("utf-8")
    for name in (
        "connectors.reliable_channel.create_reliable_channel",
        "sds_core.message_channel.MessageChannel.send",
        "sds_core.mvds.node.Node.tick",
        "sds_core.wire.decode",
    ):
        assert f'id="{name}"' in page
