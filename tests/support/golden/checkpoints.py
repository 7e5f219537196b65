"""Makes a small checkpoint with this release, for tests of later ones.

``python -m tests.support.golden.checkpoints`` drains the first half of the shipped
recording and keeps the checkpoint in a folder named for the version. Made once per
release that changes the state; never made again for an older one.
"""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.job import running_job
from streaming.session import make_session
from streaming.settings import JobSettings, SessionSettings, SourceSettings

CHECKPOINTS = Path(__file__).parents[2] / "golden" / "checkpoints"
TOPIC = "golden"
HALF = 900
"""Records of the recording that the checkpoint has read."""


def main() -> None:
    """Make the checkpoint, unless this version has one."""
    target = CHECKPOINTS / version("sds-monitor")
    if target.exists():
        sys.exit(f"{target} is there already: delete it if it never landed")
    records = load_recording()[:HALF]
    with EmbeddedBroker() as broker:
        kafka = KafkaSettings(broker.bootstrap, TOPIC)
        ensure_frames_topic(kafka, partitions_of(records))
        write(records, kafka)
        spark = make_session(SessionSettings("local[2]", shuffle_partitions=2))
        settings = JobSettings(
            SourceSettings(kafka), target, until_caught_up=True, report_detail=True
        )
        with running_job(spark, settings) as job:
            while not job.wait(1.0):
                pass
        spark.stop()
    (target / "monitor" / "lock").unlink()
    for checksum in target.rglob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(target / "sources", ignore_errors=True)


if __name__ == "__main__":
    main()
