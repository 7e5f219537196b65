"""A chat of several processes over a simulated lossy network: see README.md."""
