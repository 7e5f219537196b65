"""What the observer concludes from SDS traffic: one view per channel."""
