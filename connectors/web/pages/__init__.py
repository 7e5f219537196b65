"""The status page: each page is complete without script; a script updates it.

Endpoints read files and all views, and draw charts. Starlette runs these synchronous
functions in its thread pool.
"""
