"""TLS for tests: a certificate of one's own, and a door with it before a plain port."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Certificate:
    """A certificate for 127.0.0.1 and localhost that is its own authority.

    Attributes:
        certificate, key: PEM files.
    """

    certificate: Path
    key: Path


def make_certificate(directory: Path) -> Certificate:
    """Make one, valid for a day, with the `openssl` of this machine."""
    made = Certificate(directory / "certificate.pem", directory / "key.pem")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=localhost",
            "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-out", str(made.certificate), "-keyout", str(made.key),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made


class TlsDoor:
    """Listens with TLS and passes everything on to a plain port of this machine.

    Args:
        certificate: What it shows.
        port: Where it listens; 0 for any free one.
        behind: The plain port.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, certificate: Certificate, port: int, behind: int) -> None:
        self._behind = behind
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-door")
        self._thread.start()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate.certificate, certificate.key)
        self._server: asyncio.Server = self._do(
            asyncio.start_server(self._pass_on, "127.0.0.1", port, ssl=context)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Refuse connections from now on, and end those that there are."""
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
