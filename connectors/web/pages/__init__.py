"""The status page. Each page works without scripts, but a script can update it.

Endpoints take long, because they read files and all views, and draw charts. So they are
synchronous functions, which Starlette runs in its thread pool.
"""
