"""One program for each library, as the pages show it; each runs by itself."""
