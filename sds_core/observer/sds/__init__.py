"""Everything that the observer concludes from SDS traffic: one view per channel."""
