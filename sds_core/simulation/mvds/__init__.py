"""Simulates nodes of MVDS on a network, and derives the truth about their messages."""
