"""The commands of the tutorial give what the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
UP = re.compile(r"the page is served until Ctrl-C: (http://\S+)/")


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_tutorial_leads_to_a_resolved_incident() -> None:
    """Each command runs unchanged, but with the interpreter and port of the test."""
    install, demo, asked, *listed = re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL)
    assert install == "make install"
    bin_ = f"{Path(sys.executable).parent}/"
    with subprocess.Popen(
        demo.replace(".venv/bin/", bin_).split(),
        cwd=ROOT,
        env=os.environ | {"SDS_MONITOR_METRICS_PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = next(found[1] for found in map(UP.match, process.stdout) if found)
            asked = asked.replace("http://127.0.0.1:9108", url)
            first = subprocess.check_output(asked, shell=True, text=True)  # noqa: S602
            assert '"id":"partition-1"' in first.replace(" ", "")
            assert '"verdict":"failing"' in first.replace(" ", "")
            by_participant, standing, ended = [
                subprocess.run(
                    command.replace(".venv/bin/", bin_).split(),
                    cwd=ROOT,
                    env=os.environ | {"SDS_MONITOR_API": url},
                    capture_output=True,
                    text=True,
                )
                for command in listed
            ]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    lacking = re.findall(
        r"^2 messages did not reach (participant-\d+) .*partition-1$",
        by_participant.stdout,
        re.MULTILINE,
    )
    assert "2 messages did not reach participant-002" in PAGE
    assert "participant-002" in lacking
    assert len(lacking) == 3
    assert by_participant.returncode == 1
    assert len(re.findall("^undelivered;", standing.stdout, re.MULTILINE)) == 2
    assert "did not contain it" in standing.stdout
    assert re.search("^undelivered, ended ", ended.stdout, re.MULTILINE)
