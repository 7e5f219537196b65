"""SDS participants in an event loop."""
