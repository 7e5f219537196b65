"""SDS participants and MVDS nodes in an event loop."""
