"""Where a command serves, and who may read it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from connectors.web.access import UNPROTECTED
from streaming.cli.serving_options import WebAddress, serving_options

ANYWHERE = ("--host", "0.0.0.0")  # noqa: S104 - nothing is bound
LOGIN = f"bearer_tokens: {{prometheus: '{'0' * 64}'}}"


def parse(*arguments: str) -> tuple[Result, WebAddress | None]:
    """Parse the options; nothing is served."""
    taken: list[WebAddress] = []

    @click.command()
    @serving_options("a test", 9108)
    def command(address: WebAddress) -> None:
        taken.append(address)

    result = CliRunner().invoke(command, arguments)
    return result, taken[0] if taken else None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_login(host: str) -> None:
    """Nothing else reaches it."""
    _, address = parse("--host", host)
    assert address is not None
    assert (address.host, address.access.config()) == (host, UNPROTECTED)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.0.2.1", "box.example.org", ""],  # noqa: S104 - refused
)
def test_other_addresses_need_a_login_or_a_flag(host: str, tmp_path: Path) -> None:
    """A configuration without a login is none."""
    (tmp_path / "web.yml").write_text("http_server_config: {http2: false}")
    for arguments in ((), ("--web-config", str(tmp_path / "web.yml"))):
        result, address = parse("--host", host, *arguments)
        assert result.exit_code == 2
        assert address is None
        line = result.stderr.splitlines()[-1]
        assert line == (
            f"Error: other machines can reach --host {host} without a login: give "
            "--web-config with basic_auth_users or bearer_tokens, or --insecure-web"
        )
    assert parse("--host", host, "--insecure-web")[1] is not None


def test_login_opens_other_addresses(tmp_path: Path) -> None:
    """Names that clients use are passed on."""
    (tmp_path / "web.yml").write_text(LOGIN)
    _, address = parse(
        *ANYWHERE,
        *("--web-config", str(tmp_path / "web.yml")),
        *("--allowed-host", "a.example", "--allowed-host", "b.example."),
    )
    assert address is not None
    assert address.access.config().needs_login
    assert address.access.hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    "name", ["monitor:9108", "*.example.org", "https://m", "m/a", "", "a..b", "ü.org"]
)
def test_name_that_no_request_can_have_is_wrong_use(name: str) -> None:
    """It would be ignored in silence."""
    result, _ = parse("--allowed-host", name)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"Error: --allowed-host {name!r} is not a host name: use a")


def test_bad_file_is_wrong_use(tmp_path: Path) -> None:
    """In one line, with the file."""
    for name, text in (("a.yml", "secrets: {}"), ("b.yml", None)):
        if text is not None:
            (tmp_path / name).write_text(text)
        result, _ = parse("--web-config", str(tmp_path / name))
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith(
            f"Error: --web-config: {tmp_path / name}"
        )
