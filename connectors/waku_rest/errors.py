"""Errors of requests to a node.

NodeError                  attributes node, request, retry_after_s
├── NodeUnreachable        no answer, or an incomplete one
│   └── NodeUntrusted      its certificate is for another name, or of no known authority
├── NodeRefused            HTTP status 400 or more, or such a status of the store
│   ├── NodeBusy           a status after which a retry may succeed
│   └── NotSubscribed      the node is not subscribed to the topic that was read
└── BadAnswer              an answer that does not follow this API
    └── TooManyPages       a store's query has more pages than are read
"""

from __future__ import annotations

_ADVICE = {
    401: "check the authorization",
    403: "check the authorization",
    404: "switch on this protocol and its REST API at the node, or check the URL",
    412: "the node knows no store: give it one, or ask a store node",
    429: "ask less often",
}


class NodeError(Exception):
    """A request to a node failed; `request` is the HTTP method and the path.

    `retry_after_s` is the wait that the node requests, seconds; None if the node
    requests no wait.
    """

    def __init__(
        self, node: str, request: str, text: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(f"node {node}: {request} {text}")
        self.node = node
        self.request = request
        self.retry_after_s = retry_after_s


class NodeUnreachable(NodeError, ConnectionError):
    """The node did not answer, or its answer is incomplete.

    An incomplete page of a relay or filter cache is an error only if it contains no
    complete message.

    Attributes:
        may_have_arrived: Whether the node may have received the request. If the node
            received a request to read a relay or filter cache, it has emptied the
            cache, and the messages are lost.
    """

    def __init__(
        self, node: str, request: str, cause: str, *, may_have_arrived: bool
    ) -> None:
        super().__init__(
            node,
            request,
            f"got no complete answer ({cause}): check the URL, and check that the "
            "node runs",
        )
        self.may_have_arrived = may_have_arrived


class NodeUntrusted(NodeUnreachable):
    """The certificate of the node is not trusted, so the request was not sent."""

    def __init__(self, node: str, request: str, cause: str) -> None:
        super().__init__(node, request, cause, may_have_arrived=False)
        self.args = (
            f"node {node}: {request} was not sent, because the node's certificate "
            f"cannot be trusted ({cause}): in --rest, use a name from the certificate, "
            "or set --rest-ca-file to the certificate of the authority that signed the "
            "node's certificate",
        )


class NodeRefused(NodeError):
    """The node answered with an error.

    `status` is the HTTP status. If only the body of a store's answer has an error
    status, `status` is the status in the body. `detail` is text from the node, at most
    200 characters.
    """

    def __init__(
        self,
        node: str,
        request: str,
        status: int,
        detail: str,
        retry_after_s: float | None = None,
    ) -> None:
        advice = _ADVICE.get(status, "see the node's log")
        said = f" ({detail})" if detail else ""
        super().__init__(
            node, request, f"was refused with {status}{said}: {advice}", retry_after_s
        )
        self.status = status
        self.detail = detail


class NodeBusy(NodeRefused):
    """The status is 429, 503 or 504, so a retry may succeed."""


class NotSubscribed(NodeRefused):
    """The node has no subscription to `topic`, for example because it restarted."""

    def __init__(
        self, node: str, request: str, status: int, detail: str, topic: str
    ) -> None:
        super().__init__(node, request, status, detail)
        self.topic = topic


class BadAnswer(NodeError):
    """The answer of a node does not follow the REST API."""

    def __init__(self, node: str, request: str, detail: str) -> None:
        super().__init__(
            node,
            request,
            f"got an answer that does not follow the REST API of a Waku node "
            f"({detail}): check the URL",
        )


class TooManyPages(BadAnswer):
    """A query of a store has more than `most` pages."""

    def __init__(self, node: str, request: str, most: int) -> None:
        super().__init__(node, request, f"more than {most} pages")
        self.args = (
            f"node {node}: {request} has more than {most:,} pages: query a shorter "
            "time span, or another node if the store cannot have so many messages",
        )
