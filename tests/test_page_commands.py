"""Each command of each page runs, or docs/commands.toml says who runs it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connectors.broker.broker import BrokerSecurity, EmbeddedBroker
from connectors.kafka.settings import Protocol
from docs import make_commands
from docs.make_commands import table
from tests.support.deployment import ROOT
from tests.support.pages.commands import page_commands, run_here
from tests.support.pages.terminal import Terminal
from tests.support.pages.world import World, world_in
from tests.support.tls import Authority

RUN_HERE = run_here()

_NAMED_FILE = re.compile(
    r"^ *```(?:toml|yaml)\n# (\w+\.(?:toml|yml))\b.*\n((?:.*\n)*?) *```$", re.MULTILINE
)
_LAST = (
    "sds-monitor plan sweep --out ",
    "sds-monitor run --config monitor.toml --checkpoint ",
)
"""These need what a later command of their page makes."""
_BLOCK = re.compile(r"^```(?:toml|yaml)\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.mark.parametrize("first_words", [*table("never_run"), *table("elsewhere")])
def test_named_command_is_on_a_page(first_words: str) -> None:
    """Otherwise, remove it from docs/commands.toml."""
    assert any(one.text.startswith(first_words) for one in page_commands())


@pytest.mark.parametrize("path", sorted(set(table("elsewhere").values())))
def test_what_runs_a_command_exists(path: str) -> None:
    """In the repository."""
    assert (ROOT / path).exists()


def test_page_lists_what_was_never_run() -> None:
    """After a change run ``python -m docs.make_commands``."""
    assert make_commands.PART.current() == make_commands.part()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all pages."""
    with world_in(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("page", RUN_HERE)
def test_commands_of_a_page_run(page: str, world: World, tmp_path: Path) -> None:
    """In order, in an empty directory with the files that the page shows."""
    _make_files(page, world, tmp_path)
    with ExitStack() as stack:
        terminal = Terminal(tmp_path, world)
        stack.callback(terminal.end)
        for command in sorted(RUN_HERE[page], key=lambda one: one.startswith(_LAST)):
            if command.startswith("helm ") and shutil.which("helm") is None:
                pytest.skip("helm is missing")
            terminal.run(command)
            if command.startswith("openssl "):
                stack.enter_context(_secured(tmp_path, world.secured_port))


def _secured(directory: Path, port: int) -> EmbeddedBroker:
    """Return the broker of docs/security.md, which also has the user of its file."""
    (directory / "etc").mkdir()
    shutil.copy(directory / "broker.pem", directory / "etc" / "ca.pem")
    return EmbeddedBroker(
        directory / "kafka-secured",
        port=port,
        security=BrokerSecurity(
            Protocol.SASL_SSL,
            directory / "broker.pem",
            directory / "broker.key",
            users={"monitor": "try-it", "sds-monitor": "try-it"},
        ),
    )


def _make_files(page: str, world: World, directory: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    planning = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
    (directory / ".config/fish/completions").mkdir(parents=True)
    (directory / "artifacts/site").mkdir(parents=True)
    files = dict(_NAMED_FILE.findall(text))
    for block in _BLOCK.findall(planning):
        files.setdefault("grid.toml" if "[grid]" in block else "channel.toml", block)
    (tokens,) = [
        one
        for one in _BLOCK.findall((ROOT / "docs/web-access.md").read_text())
        if "peer_tokens" in one
    ]
    files["tokens.yml"] = tokens
    files["mutual.yml"] = (
        "tls_server_config:\n  cert_file: mirror-2.pem\n  key_file: mirror-2.key\n"
        "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
    )
    files["mirror-1.token"] = "try-it"
    for name, content in files.items():
        path = directory / name
        path.write_text(world.here(content).replace('"…"', '"try-it"'))
        path.chmod(0o600)
    authority = Authority(directory)
    for name in ("server", "mirror-1", "mirror-2"):
        made = authority.issue("127.0.0.1")
        shutil.move(made.certificate_file, directory / f"{name}.pem")
        shutil.move(made.key_file, directory / f"{name}.key")
