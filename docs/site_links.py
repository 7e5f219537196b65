"""MkDocs hook: pages from outside `docs/`, and links that leave the site.

The repository has no public address that the site could link to. So the pages that
readers need are copied in, and other links out of `docs/` become the path in code
letters: a path that a reader with a checkout can open, and no broken link.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "vulnerabilities.md",
    **{
        f"dashboards/runbooks/{runbook.name}": f"runbooks/{runbook.name}"
        for runbook in sorted(ROOT.glob("dashboards/runbooks/*.md"))
    },
}
"""Page in the repository -> its path on the site."""

_SOURCES = {target: source for source, target in COPIED.items()}
# A fence stays as it is; of a link, the text and the target.
_LINK = re.compile(
    r"^```.*?^```$|(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)", re.MULTILINE | re.DOTALL
)


def on_config(config: MkDocsConfig) -> None:
    """List the runbooks beside the page of alerts."""
    nav: list[dict[str, list[str]]] = config.nav or []
    listed = next(section["Alerts"] for section in nav if "Alerts" in section)
    listed += [page for page in COPIED.values() if page.startswith("runbooks/")]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs/`."""
    for source, target in COPIED.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Rewrite the links of a page."""
    here = page.file.src_uri
    folder = posixpath.dirname(_SOURCES.get(here, f"docs/{here}"))

    def link(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups(default="")
        if not target or re.match("[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        on_site = COPIED.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(on_site) is None and (ROOT / path).exists():
            return text if path in text or "`" in text else f"{text} (`{path}`)"
        relative = posixpath.relpath(on_site, posixpath.dirname(here) or ".")
        return f"{mark}[{text}]({relative}{anchor})"

    return _LINK.sub(link, markdown)
