"""Nodes of MVDS on a simulated network, and the truth about their messages."""
