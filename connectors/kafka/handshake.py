"""Performs a handshake with a broker, to report early why the broker refuses a client.

Client libraries retry after every error, and in the end report only a timeout.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

from kafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    KafkaProtocolError,
    NoError,
    UnsupportedSaslMechanismError,
    for_code,
)
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from connectors.kafka.clients import kafka_python_user, ssl_context
from connectors.kafka.settings import (
    KafkaRefused,
    KafkaSettings,
    KafkaUnreachable,
    Protocol,
)

_POLL_S = 0.2
_ANSWER_S = 5.0
"""Maximum time to connect to a broker, and maximum wait for each part of an answer,
seconds."""
_ANSWER_BYTES = 64 * 1024
_TLS_ALERT = b"\x15\x03"
_OTHER_NAME = (62, 64)
"""OpenSSL's error codes for a certificate that does not contain the host name or
address."""


def wait_until_listening(settings: KafkaSettings) -> None:
    """Wait until a broker accepts a connection.

    Call this function before you create a client of kafka-python. If such a client
    reaches no broker, it leaves a thread and open sockets behind.

    Raises:
        KafkaRefused: A broker refuses the client. The function raises this error at
            once; it retries only after other errors, until the timeout.
        KafkaUnreachable: No broker answered within the settings' timeout.
        SecurityUnusable: A file in the security settings cannot be used.
    """
    deadline = time.monotonic() + settings.timeout_s
    while True:
        cause = check_admission(settings)
        if cause is None:
            return
        if time.monotonic() >= deadline:
            raise KafkaUnreachable(settings.bootstrap, cause)
        time.sleep(_POLL_S)


def check_admission(settings: KafkaSettings) -> Exception | None:
    """Return None if a broker accepts the client, else an error that may be temporary.

    Raises:
        KafkaRefused: No broker accepts the client, and at least one broker refuses the
            client permanently.
        SecurityUnusable: A file in the security settings cannot be used.
    """
    security = settings.security
    tls = ssl_context(security) if security.is_encrypted else None
    refused: KafkaRefused | None = None
    cause: Exception | None = None
    for address in settings.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            _greet(settings, tls, host.strip("[]"), int(port))
        except KafkaRefused as error:
            refused = error
        except (OSError, KafkaError, OverflowError, ValueError) as error:
            cause = error
        else:
            return None
    if refused is not None:
        raise refused
    return cause


def _greet(
    settings: KafkaSettings,
    tls: ssl.SSLContext | None,
    host: str,
    port: int,
    was_closed_before: bool = False,
) -> None:
    address = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), _patience(settings)) as connection:
            if tls is None:
                _introduce(_Conversation(connection), settings, host)
            else:
                with tls.wrap_socket(connection, server_hostname=host) as encrypted:
                    _introduce(_Conversation(encrypted), settings, host)
    except ssl.SSLCertVerificationError as error:
        raise _of_certificate(error, address, host) from error
    except ssl.SSLError as error:
        if error.reason and "ALERT" in error.reason:
            cause = f"the broker ended the TLS handshake with the alert {error.reason}"
            remedy = (
                "check --kafka-certificate-file and --kafka-key-file, because the "
                "broker may require a client certificate"
            )
            raise KafkaRefused(address, cause, remedy) from error
        _check_plain(settings, host, port)
        raise
    except _ClosedAfterAnswer as error:
        if not was_closed_before:
            # Try once more, because a broker that is shutting down also closes the
            # connection, but does not accept the next connection.
            time.sleep(_POLL_S)
            _greet(settings, tls, host, port, was_closed_before=True)
            return
        secured = Protocol(f"SASL_{settings.security.protocol}")
        remedy = f"use --kafka-protocol {secured}, with --kafka-username and a password"
        raise KafkaRefused(
            settings.bootstrap, "the broker requires a login", remedy
        ) from error
    except ConnectionError:
        if tls is not None:
            _check_plain(settings, host, port)
        raise
    except _SpeaksTls as error:
        remedy = "use --kafka-protocol SSL or SASL_SSL, or a port without TLS"
        raise KafkaRefused(address, "the broker speaks TLS", remedy) from error
    except KafkaProtocolError as error:
        remedy = "check --bootstrap"
        raise KafkaRefused(
            address, "the program at this address is not Kafka", remedy
        ) from error


def _patience(settings: KafkaSettings) -> float:
    return min(_ANSWER_S, settings.timeout_s)


def _introduce(conversation: _Conversation, settings: KafkaSettings, host: str) -> None:
    conversation.ask(ApiVersionsRequest(version=0))
    if settings.security.has_user:
        _log_in(conversation, settings, host)
    try:
        conversation.ask(MetadataRequest(version=1, topics=[]))
    except ConnectionResetError as error:
        if settings.security.has_user:
            raise
        raise _ClosedAfterAnswer(*error.args) from error


def _log_in(conversation: _Conversation, settings: KafkaSettings, host: str) -> None:
    security = settings.security
    offer = conversation.ask(
        SaslHandshakeRequest(mechanism=security.mechanism.value, version=1)
    )
    error = for_code(offer.error_code)
    if error is UnsupportedSaslMechanismError:
        cause = f"the broker does not support {security.mechanism}"
        remedy = f"use --kafka-mechanism with one of {', '.join(offer.mechanisms)}"
        raise KafkaRefused(settings.bootstrap, cause, remedy)
    if error is IllegalSaslStateError:
        plain = security.protocol.removeprefix("SASL_")
        remedy = f"use --kafka-protocol {plain}, or a port that accepts logins"
        raise KafkaRefused(
            settings.bootstrap, "the broker does not accept logins on this port", remedy
        )
    if error is not NoError:
        raise error
    mechanism = get_sasl_mechanism(security.mechanism.value)(
        host=host, **kafka_python_user(security)
    )
    refused = KafkaRefused(
        settings.bootstrap,
        f"the broker rejects the login of {security.username!r} with mechanism "
        f"{security.mechanism}",
        "check --kafka-username, the password and --kafka-mechanism",
    )
    while not mechanism.is_done():
        answer = conversation.ask(
            SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes(), version=1)
        )
        if for_code(answer.error_code) is not NoError:
            raise refused
        try:
            mechanism.receive(answer.auth_bytes)
        except (ValueError, KeyError):
            # Hide the cause of the error, because its text may contain a secret.
            raise refused from None


def _of_certificate(
    error: ssl.SSLCertVerificationError, address: str, host: str
) -> KafkaRefused:
    problem = error.verify_message.rstrip(".")
    cause = f"the broker's certificate cannot be trusted: {problem}"
    if error.verify_code in _OTHER_NAME:
        remedy = f"in --bootstrap, use a name from the certificate, not {host}"
    else:
        remedy = (
            "set --kafka-ca-file to the certificate of the authority that signed the "
            "broker's certificate"
        )
    return KafkaRefused(address, cause, remedy)


def _check_plain(settings: KafkaSettings, host: str, port: int) -> None:
    """Raise KafkaRefused if the broker answers in plain text instead of TLS."""
    try:
        with socket.create_connection((host, port), _patience(settings)) as connection:
            _Conversation(connection).ask(ApiVersionsRequest(version=0))
    except (OSError, KafkaError, _SpeaksTls):
        return
    plain = "SASL_PLAINTEXT" if settings.security.has_user else "PLAINTEXT"
    remedy = f"use a port with TLS, or --kafka-protocol {plain} to omit TLS"
    raise KafkaRefused(
        settings.bootstrap, "the broker does not use TLS on this port", remedy
    )


class _ClosedAfterAnswer(ConnectionResetError):
    """The broker answered a client that did not log in, then closed the connection."""


class _SpeaksTls(Exception):
    """The broker answered an unencrypted request with a TLS alert."""


class _Conversation:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._protocol = KafkaProtocol(client_id="sds-monitor")

    def ask(self, request: Any) -> Any:
        """Return the answer to a request.

        Raises ConnectionResetError if the broker closed the connection.
        """
        self._protocol.send_request(request)
        self._connection.sendall(self._protocol.send_bytes())
        while True:
            received = self._connection.recv(_ANSWER_BYTES)
            if not received:
                raise ConnectionResetError("the broker closed the connection")
            if received.startswith(_TLS_ALERT):
                raise _SpeaksTls
            for _, answer in self._protocol.receive_bytes(received):
                return answer
