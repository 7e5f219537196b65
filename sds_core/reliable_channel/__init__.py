"""The Reliable Channel above SDS, as far as a frame's content shows it."""
