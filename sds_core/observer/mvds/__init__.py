"""MVDS in the monitor (docs/figures.md, 14)."""
