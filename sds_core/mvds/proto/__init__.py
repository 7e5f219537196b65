"""The protobuf of both field numberings.

`sds_core/wire/proto/generate.sh` makes the modules from the .proto files.
"""
