"""Measures what a delivery by MVDS takes on lossy networks, for docs/mvds.md.

``python -m docs.make_mvds_delivery`` runs it; it takes a few minutes of two
processors. The same versions give the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

from docs.page_part import PagePart, table
from sds_core.simulation.mvds.log import Made, Reached, Sending
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.mvds.simulator import simulate_mvds

PART = PagePart("mvds.md", "make_mvds_delivery", "what a delivery takes")

LOSSES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
MODES = ("batch", "interactive")
BACKOFFS = ("document", "linear", "deployed")
SEEDS = range(1, 6)
NODES = 5
MESSAGES_S = 600
"""Time in which messages are made, s."""
INTERVAL_S = 10.0
HORIZON_EPOCHS = 3_600
"""Deliveries that take longer count as not delivered."""

_START_MS = 1_786_000_000_000
_EPOCH_MS = 1_000


class Setting(NamedTuple):
    """One row of the table.

    Attributes:
        mode: `batch` or `interactive`.
        backoff: As in `MvdsScenario`.
        loss: Share of payloads lost on each link, each for itself.
    """

    mode: str
    backoff: str
    loss: float


class Measured(NamedTuple):
    """Result of one simulation.

    Attributes:
        epochs: Time from each message's making to each delivery within the horizon,
            in epochs, ascending.
        due: Number of pairs of a message and another node.
        payloads: Number of payloads that nodes sent.
        records: Number of records in them.
        payload_bytes: Their length.
    """

    epochs: list[float]
    due: int
    payloads: int
    records: int
    payload_bytes: int


class Row(NamedTuple):
    """Simulations of one setting with different seeds."""

    setting: Setting
    results: list[Measured]


def simulate(setting: Setting, seed: int, nodes: int = NODES) -> Measured:
    """Simulate a sender and its receivers, which do not forward what they receive.

    Args:
        setting: Mode, back-off and loss.
        seed: Seed of messages, losses and delays.
        nodes: Number of nodes; the first one sends.
    """
    scenario = MvdsScenario.from_mapping(
        {
            "protocol": "mvds",
            "name": "delivery",
            "description": "One sender and its receivers.",
            "duration_s": MESSAGES_S,
            "settle_s": HORIZON_EPOCHS * _EPOCH_MS / 1_000,
            "nodes": nodes,
            "interval_s": INTERVAL_S,
            "mode": setting.mode,
            "backoff": setting.backoff,
            "epoch_ms": _EPOCH_MS,
            "forward": False,
            "network": {
                "loss": setting.loss,
                "delay": {"distribution": "uniform", "low_ms": 30, "high_ms": 300},
            },
        }
    )
    made_ms: dict[bytes, int] = {}
    epochs = []
    payloads = records = payload_bytes = 0
    for entry in simulate_mvds(scenario, seed, _START_MS):
        match entry:
            case Made():
                made_ms[entry.message_id] = entry.at_ms
            case Reached():
                # The sender does not reach itself.
                epochs.append((entry.at_ms - made_ms[entry.message_id]) / _EPOCH_MS)
            case Sending():
                sent = entry.payload
                payloads += 1
                payload_bytes += len(entry.value)
                records += sum(
                    map(len, (sent.acks, sent.offers, sent.requests, sent.messages))
                )
    in_time = sorted(one for one in epochs if one <= HORIZON_EPOCHS)
    due = len(made_ms) * (nodes - 1)
    return Measured(in_time, due, payloads, records, payload_bytes)


def measure(
    settings: Iterable[Setting] | None = None, seeds: Sequence[int] = SEEDS
) -> list[Row]:
    """Simulate everything that the table shows, as many at once as processors."""
    some = list(_settings() if settings is None else settings)
    plays = [(one, seed) for one in some for seed in seeds]
    with ProcessPoolExecutor() as pool:
        results = iter(list(pool.map(_simulate, plays, chunksize=4)))
    return [Row(one, [next(results) for _ in seeds]) for one in some]


def _settings() -> Iterator[Setting]:
    yield from map(Setting._make, product(MODES, BACKOFFS, LOSSES))


def _simulate(play: tuple[Setting, int]) -> Measured:
    return simulate(*play)


def about() -> str:
    """Return what all simulations have in common, one sentence per line."""
    return "\n".join(
        (
            f"One node sends a message every {INTERVAL_S:g} s on average, for "
            f"{MESSAGES_S // 60} minutes, to {NODES - 1} other nodes. These nodes do "
            "not forward the message.",
            "Each payload that the sender sends or receives is lost with the "
            "probability in the column *loss*, independently of other payloads.",
            f"Each row combines {len(SEEDS)} simulations with different seeds.",
            "",
            "- *p50*, *p95*: epochs from `append` until a receiver has the message; "
            "an undelivered message counts as slower than every delivered message.",
            "- *undelivered*: share of the pairs of a message and a receiver in which "
            f"the receiver does not get the message within {HORIZON_EPOCHS:,} epochs.",
            "- *payloads*, *records*, *bytes*: numbers of payloads, records and bytes "
            "that all nodes send until the simulation ends, divided by the number of "
            "deliveries. Acknowledgements are included.",
            "- back-off *document*: the waits are 2, 4, …, 128 epochs, and then start "
            "again at 2 epochs, as the specification defines.",
            "- back-off *linear*: each wait is two epochs longer than the previous "
            "wait, as in the simulation of vacp2p/mvds.",
            "- back-off *deployed*: the waits are 90, 180, 360, … epochs, and a random "
            "number of up to 29 epochs is added to each wait. status-go uses this "
            "back-off, with epochs of 300 ms.",
        )
    )


def block(rows: Iterable[Row]) -> str:
    """Return the table, between its markers."""
    heads = (
        "mode",
        "back-off",
        "loss",
        "p50",
        "p95",
        "undelivered",
        "payloads",
        "records",
        "bytes",
    )
    rows = list(rows)
    # All settings have the same seeds, and so the same messages.
    due = max(_due(results) for _, results in rows)
    pairs = f"Each row covers {due:,} pairs of a message and a receiver."
    lines = table(heads, map(_cells, rows))
    return "\n".join([PART.begin, "", about(), "", pairs, "", *lines, "", PART.end])


def _due(results: Iterable[Measured]) -> int:
    return sum(one.due for one in results)


def _cells(row: Row) -> Iterator[str]:
    setting, results = row
    due = _due(results)
    epochs = sorted(one for result in results for one in result.epochs)
    per_delivery = partial(_ratio, len(epochs))
    yield setting.mode
    yield setting.backoff
    yield f"{setting.loss * 100:.0f} %"
    yield _quantile(epochs, due, 0.5)
    yield _quantile(epochs, due, 0.95)
    yield f"{(due - len(epochs)) / due * 100:.1f} %"
    yield per_delivery(sum(one.payloads for one in results))
    yield per_delivery(sum(one.records for one in results))
    yield per_delivery(sum(one.payload_bytes for one in results), digits=0)


def _quantile(epochs: Sequence[float], due: int, share: float) -> str:
    """Return the least time within which a share of all due pairs was delivered."""
    needed = -int(-share * due // 1)
    if needed > len(epochs):
        return f"> {HORIZON_EPOCHS:,}"
    return f"{epochs[needed - 1]:,.1f}"


def _ratio(whole: int, part: int, digits: int = 1) -> str:
    return f"{part / whole:,.{digits}f}" if whole else "-"


def main() -> None:
    """Simulate, print the table, and write it to the page."""
    made = block(measure())
    print(made)
    PART.write(made)


if __name__ == "__main__":
    main()
