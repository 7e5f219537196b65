"""State of SDS participants and reliable channels on disk (SQLite)."""
