"""Helpers for tests of MVDS."""
