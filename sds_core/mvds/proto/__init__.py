"""The protobuf of both field numberings.

sds_core/wire/proto/generate.sh makes the Python from the .proto.
"""
