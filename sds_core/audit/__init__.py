"""Compares a mirror with a store or another mirror, to find messages that one lacks."""
