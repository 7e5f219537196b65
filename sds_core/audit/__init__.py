"""Finds the messages that only one of two sides has.

One side is a mirror. The other side is a store or another mirror.
"""
