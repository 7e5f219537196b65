"""Generated files are committed and correct."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from dashboards import Links
from dashboards.build import GENERATED, files, main


def read(directory: Path) -> dict[Path, str]:
    """All files below a directory."""
    return {
        path.relative_to(directory): path.read_text(encoding="utf-8")
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_committed_files_are_up_to_date() -> None:
    """If not, run ``python -m dashboards.build``."""
    made = files(Links())
    stale = [str(p) for p, text in read(GENERATED).items() if made.get(p) != text]
    assert stale == []
    assert made.keys() == read(GENERATED).keys()


def test_links_have_the_given_base_url(tmp_path: Path) -> None:
    """With or without a slash at its end."""
    urls = [
        "--monitor-url",
        "https://sds.example/",
        "--grafana-url",
        "https://g.example",
        "--runbook-url",
        "https://docs.example/runbooks/",
    ]
    result = CliRunner().invoke(main, ["--out", str(tmp_path), *urls])
    assert result.exit_code == 0, result.output
    links = Links(
        "https://sds.example", "https://g.example", "https://docs.example/runbooks"
    )
    assert read(tmp_path) == files(links)
    assert "localhost" not in "".join(files(links).values())
