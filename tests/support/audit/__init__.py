"""Mirrors and stores with the same messages, for audits."""
