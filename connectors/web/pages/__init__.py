"""The status page. Each page is complete without scripts, but a script updates it.

Endpoints are synchronous functions, which Starlette runs in its thread pool, because
they read files and all views, and draw charts.
"""
