"""The program for ``spark-submit``, which takes only a file: see docs/scaling.md."""

from streaming.cli import main

main()
