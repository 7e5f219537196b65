"""``python -m streaming.cli``: the command without its script."""

from streaming.cli import main

main()
