"""The server before the job runs."""

from __future__ import annotations

import httpx

from sds_core.observer import blob
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.cli.serving import PendingJob, status_server


def test_figures_are_published_after_their_incidents() -> None:
    """Otherwise a restart would report for seconds that nothing is lost."""
    pending = PendingJob()
    totals = blob.totals_part(blob.pack(ChannelTotals(gaps_lost=1), None))
    pending.board.set_totals({CHANNELS.key("town"): totals})
    with (
        status_server(pending, "127.0.0.1", 0) as url,
        httpx.Client(base_url=url) as client,
    ):
        assert client.get("/readyz").status_code == 503
        assert client.get("/api/v1/incidents").status_code == 503
        assert "sds_messages_total" not in client.get("/metrics").text
