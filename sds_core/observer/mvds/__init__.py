"""MVDS as the monitor observes it (docs/figures.md, 14)."""
