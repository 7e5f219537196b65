"""Forecasts what channels will cost, and when they reach their limits. No I/O."""
