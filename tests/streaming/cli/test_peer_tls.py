"""Access between mirrors: files and token of the side that asks, the served address."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from connectors.sync_tcp.address import Address
from streaming.cli.actions.audit import peer_side
from streaming.cli.audit import command
from streaming.cli.node_options import PeerAccess, TrafficOptions
from tests.support.tls import Authority

NOWHERE = Address("192.0.2.1", 9111)
SHARED = "shared"
ALL = TrafficOptions((), (), 1, 8)


def test_files_of_a_peer_go_together(tmp_path: Path) -> None:
    """An authority alone, or all three, or none: else one line says what is missing."""
    authority = Authority(tmp_path)
    own = authority.issue("mirror-1")
    files = (authority.ca_file, own.certificate_file, own.key_file)
    for given in ((None, None, None), (files[0], None, None), files):
        assert peer_side(NOWHERE, PeerAccess(*given), ALL).name == "192.0.2.1:9111"
    for given in ((None, files[1], files[2]), (files[0], files[1], None)):
        with pytest.raises(click.UsageError, match="give --peer-ca-file alone, or"):
            peer_side(NOWHERE, PeerAccess(*given), ALL)


def test_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """Whichever it is."""
    authority = Authority(tmp_path)
    own = authority.issue("mirror-1")
    (tmp_path / "text").write_text("no certificate")
    for files in (
        PeerAccess(tmp_path / "text"),
        PeerAccess(authority.ca_file, own.certificate_file, tmp_path / "text"),
    ):
        with pytest.raises(click.UsageError, match=r"text cannot be used \("):
            peer_side(NOWHERE, files, ALL)


def test_token_is_sent_only_where_others_cannot_read_it(tmp_path: Path) -> None:
    """Over TLS, or within this machine."""
    authority = Authority(tmp_path)
    peer_side(NOWHERE, PeerAccess(authority.ca_file, peer_token=SHARED), ALL)
    peer_side(Address("::1", 9111), PeerAccess(peer_token=SHARED), ALL)
    with pytest.raises(
        click.UsageError, match="token would be sent without encryption"
    ):
        peer_side(NOWHERE, PeerAccess(peer_token=SHARED), ALL)


def test_token_is_no_option() -> None:
    """Every user of the machine can read a command line."""
    options = ["--bootstrap", "127.0.0.1:1", "--peer", "127.0.0.1:1"]
    result = CliRunner().invoke(command, [*options, "--peer-token", "secret"])
    assert result.exit_code == 2
    assert "give the value as SDS_MONITOR_PEER_TOKEN" in result.stderr.splitlines()[-1]
    assert "secret" not in result.stderr


@pytest.mark.parametrize("tokens", ["bearer_tokens", "peer_tokens"])
def test_records_are_not_served_to_strangers(tmp_path: Path, tokens: str) -> None:
    """A login for metrics opens no mirror; without TLS, others could read a token."""
    (tmp_path / "web.yml").write_text(f"{tokens}: {{a: '{'0' * 64}'}}")
    options = [
        *("serve", "--bootstrap", "127.0.0.1:1", "--state", str(tmp_path / "state")),
        *("--sync-host", "192.0.2.1", "--web-config", str(tmp_path / "web.yml")),
    ]
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "Error: other machines can reach --sync-host 192.0.2.1 without a login: give "
        "--web-config with client_auth_type: RequireAndVerifyClientCert, with "
        "cert_file and peer_tokens, or --insecure-web"
    )
    assert not (tmp_path / "state").exists()
