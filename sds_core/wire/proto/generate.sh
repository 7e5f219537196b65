#!/bin/sh
# Makes the Python of every .proto of the libraries anew:
#
#   PYTHON=.venv/bin/python sh sds_core/wire/proto/generate.sh
#
# protoc is run from the root of the repository, so that the generated modules know
# themselves by their full names. The protobuf installed at run time must be at least as
# new as the version named at the top of the generated code.
set -eu
cd "$(dirname "$0")/../../.."
"${PYTHON:-python}" -m grpc_tools.protoc -I. --python_out=. --pyi_out=. \
    sds_core/*/proto/*.proto
# The stubs leave a generic type bare, which strict mypy refuses.
for stub in sds_core/*/proto/*_pb2.pyi; do
    sed 's/_Mapping\]/_Mapping[str, object]]/g' "$stub" > "$stub.new"
    mv "$stub.new" "$stub"
done
