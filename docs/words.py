"""Checks the words of the product with Vale: ``make words``.

`docs.sentences` finds the sentences, also in Python's strings, docstrings and comments,
where Vale itself finds only a part. The rules are in ``tools/vale/styles/SdsMonitor``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.sentences import KINDS, Sentence, read_kind

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "tools" / "vale" / "vale.ini"


def check(sentences: Sequence[Sentence]) -> Iterator[tuple[Sentence, str, str]]:
    """Yield each sentence that breaks a rule, with the rule's name and its message.

    Raises:
        FileNotFoundError: Vale is not installed.
        subprocess.CalledProcessError: Vale does not accept the style.
    """
    command = ["vale", f"--config={CONFIG}", "--no-exit", "--ext=.md", "--output=JSON"]
    # A paragraph each, so that its number follows from the line.
    text = "\n\n".join(sentence.text for sentence in sentences)
    result = subprocess.run(  # noqa: S603 - a fixed command
        command, input=text, stdout=subprocess.PIPE, text=True, check=True
    )
    for alerts in json.loads(result.stdout).values():
        for alert in alerts:
            rule = alert["Check"].removeprefix("SdsMonitor.")
            yield sentences[(alert["Line"] - 1) // 2], rule, alert["Message"]


def main() -> int:
    """Print the sentences that break a rule, with their places; 1 if any does.

    The command line names kinds of text; by default, all are checked.
    """
    kinds = sys.argv[1:] or KINDS
    sentences = [sentence for kind in kinds for sentence in read_kind(ROOT, kind)]
    count = 0
    for sentence, rule, message in check(sentences):
        print(
            f"{sentence.path}:{sentence.line}: {rule}: {message}\n    {sentence.text}"
        )
        count += 1
    print(f"{len(sentences)} sentences, {count} break a rule")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
