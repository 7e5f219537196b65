"""Measurements of docs/performance.md and scaling.md, which `plan size` fits."""
