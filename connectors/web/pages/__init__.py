"""The status page: each page is complete without script; a script updates it.

Endpoints are synchronous, so Starlette runs them in its thread pool: they read files
and all views, and draw charts.
"""
