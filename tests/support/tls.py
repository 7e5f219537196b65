"""TLS for tests: short-lived certificates, and a TLS proxy before a plain port."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key.

    Attributes:
        certificate_file: PEM, with those between it and the authority.
        key_file: PEM, PKCS #8.
    """

    certificate_file: Path
    key_file: Path


class Authority:
    """A certificate authority of one test.

    Attributes:
        ca_file: Its certificate, PEM.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.ca_file = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca_file))

    def issue(
        self, host: str, password: str | None = None, until: datetime | None = None
    ) -> Identity:
        """Make a certificate for a host name or address.

        Args:
            host: Whom it is for.
            password: Of the key; None to leave it open.
            until: When it expires; None for far away.
        """
        issued = self._ca.issue_cert(host, not_after=until)
        identity = Identity(
            self._directory / f"{host}.pem", self._directory / f"{host}.key"
        )
        identity.certificate_file.write_bytes(
            b"".join(one.bytes() for one in issued.cert_chain_pems)
        )
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        identity.key_file.write_bytes(
            key.private_bytes(
                Encoding.PEM,
                PrivateFormat.PKCS8,
                BestAvailableEncryption(password.encode())
                if password
                else NoEncryption(),
            )
        )
        return identity


class TlsDoor:
    """Listens with TLS and passes everything on to a plain port of this machine.

    Args:
        certificate: What it shows.
        port: Where it listens; 0 for any free one.
        behind: The plain port.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, certificate: Identity, port: int, behind: int) -> None:
        self._behind = behind
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-door")
        self._thread.start()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        self._server: asyncio.Server = self._do(
            asyncio.start_server(self._pass_on, "127.0.0.1", port, ssl=context)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Refuse new connections and end existing ones."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(
            "127.0.0.1", self._behind
        )
        try:
            await asyncio.gather(
                _copy(reader, inner_writer), _copy(inner_reader, writer)
            )
        finally:
            inner_writer.close()
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
