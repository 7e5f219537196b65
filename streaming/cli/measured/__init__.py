"""Measurements that `plan size` is fitted to, of docs/performance.md and scaling.md."""
