"""Everything that the observer concludes from SDS traffic; each channel has a view."""
