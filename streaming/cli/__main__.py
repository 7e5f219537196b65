"""Runs sds-monitor as ``python -m streaming.cli``, without the installed script."""

from streaming.cli import main

main()
