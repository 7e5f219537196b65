"""What a release needs beside the code: its version, and files for people."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deployment import ROOT, version

FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
NAMING_THE_VERSION = (
    "pyproject.toml",
    "deploy/sds-core/pyproject.toml",
    "deploy/kubernetes/Dockerfile",
    "deploy/helm/sds-monitor/Chart.yaml",
    "docker-compose.yml",
    "docs/kubernetes.md",
    "CITATION.cff",
)
AUTHORS = [{"name": "sds-monitor contributors"}]


def parsed(path: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_version_is_written_into_every_file(tmp_path: Path) -> None:
    """By ``make version``; of a file that names it and is missing above, no trace."""
    for name in ("Makefile", *NAMING_THE_VERSION):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    make = ["make", "version", "VERSION=12.34.56", "PYTHON=true"]
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    for name in NAMING_THE_VERSION:
        text = (tmp_path / name).read_text("utf-8")
        assert "12.34.56" in text, name
        # That of the format of citations may be the same by chance.
        text = re.sub("^cff-version: .*", "", text, flags=re.MULTILINE)
        assert not re.search(rf"(?<![\d.]){re.escape(version())}(?![\d.])", text), name
    chart = yaml.safe_load((tmp_path / NAMING_THE_VERSION[3]).read_text("utf-8"))
    assert chart["version"] == chart["appVersion"] == "12.34.56"


def test_version_must_be_given() -> None:
    """Otherwise nothing is written."""
    done = subprocess.run(
        ["make", "version", "PYTHON=false"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "make version VERSION=" in done.stderr


def test_citation_has_what_its_format_requires() -> None:
    """Version 1.2.0 of the Citation File Format, and the facts of pyproject.toml."""
    citation = parsed("CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["message"]
    assert citation["title"] == project["name"]
    assert citation["version"] == project["version"]
    assert citation["authors"] == project["authors"] == AUTHORS
    assert set(citation["license"]) == set(project["license"].split(" OR "))
    released = f"## [{version()}] - {citation['date-released']}"
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert released in changelog or "\n## Unreleased\n" in changelog


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_issue_form_asks_for_something(form: Path) -> None:
    """Each field has an id and a label, and one at least must be filled in."""
    described = yaml.safe_load(form.read_text("utf-8"))
    assert described["name"]
    assert described["description"]
    fields = [field for field in described["body"] if field["type"] != "markdown"]
    assert all(field["type"] in ("textarea", "input") for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(f.get("validations", {}).get("required") for f in fields)


def test_commands_of_make_exist() -> None:
    """Those that the templates and the page of a release name."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for name in (".github/pull_request_template.md", "docs/release.md"):
        text = (ROOT / name).read_text("utf-8")
        lines = re.findall(r"(?:^ *|`|compiled )make ([^`\n]+)", text, re.M)
        words = {word for line in lines for word in line.split() if "=" not in word}
        assert words
        assert words <= set(targets)
