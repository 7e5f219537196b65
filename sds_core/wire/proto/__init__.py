"""The protobuf of both dialects; `generate.sh` makes the modules from .proto files."""
