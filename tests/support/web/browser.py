"""Chromium, and tabs that reach nothing but the monitor."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium: the system's, or else Playwright's own."""
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield launched
        launched.close()


@pytest.fixture
def complaints() -> list[str]:
    """What pages write to the console, their errors, and requests to elsewhere."""
    return []


@pytest.fixture
def page(browser: Browser, served: str, complaints: list[str]) -> Iterator[Page]:
    """An empty tab at desktop width that reaches nothing but the monitor."""
    tab = browser.new_page(
        base_url=served,
        viewport={"width": 1280, "height": 800},
        permissions=["clipboard-read", "clipboard-write"],
    )

    def only_the_monitor(route: Any) -> None:
        if route.request.url.startswith(served):
            route.continue_()
        else:
            complaints.append(route.request.url)
            route.abort()

    tab.route("**/*", only_the_monitor)
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    tab.close()
