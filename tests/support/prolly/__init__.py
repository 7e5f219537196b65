"""What tests of Prolly trees share."""
