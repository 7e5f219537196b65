"""The status page: each page is complete without script; a script updates it."""
