"""The state of SDS participants on disk, to continue after a sudden end."""
