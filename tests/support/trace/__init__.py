"""Traces of simulated traffic, without Kafka."""
