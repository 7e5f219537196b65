"""Takes the picture of the status page that the README shows.

With ``sds-monitor demo --keep`` running: ``python docs/screenshot.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

_CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main() -> None:
    """Open the page and save what it shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:9108/")
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=640)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "images" / "status.png"
    )
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        page = browser.new_page(
            viewport={"width": options.width, "height": options.height}
        )
        page.goto(options.url)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=options.out)
        browser.close()


if __name__ == "__main__":
    main()
