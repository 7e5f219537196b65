"""Protobuf classes of both dialects; `generate.sh` makes them from .proto files."""
