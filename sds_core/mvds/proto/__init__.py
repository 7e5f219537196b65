"""Generated protobuf modules for the two field numberings of MVDS payloads.

`sds_core/wire/proto/generate.sh` generates them from the .proto files.
"""
