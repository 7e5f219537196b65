"""The REST API of Waku nodes (logos-delivery)."""
