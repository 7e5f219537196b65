"""What a mirror decides and counts: no network, no files, no clock."""
