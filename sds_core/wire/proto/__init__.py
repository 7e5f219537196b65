"""The protobuf of both dialects; `generate.sh` makes the Python from the .proto."""
