"""The rules by which the observer judges SDS traffic, with one view per channel."""
