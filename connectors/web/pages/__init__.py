"""The status page. Each page is complete without scripts, but a script updates it.

Endpoints read files and all views, and draw charts. They are synchronous, so Starlette
runs them in its thread pool.
"""
