"""The generated code agrees with the .proto files beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from sds_core.mvds.proto import mvds_pb2, mvds_vacp2p_pb2
from sds_core.wire.proto import sds_nim_pb2, sds_spec_pb2

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "generated",
    [
        module.DESCRIPTOR
        for module in (sds_spec_pb2, sds_nim_pb2, mvds_pb2, mvds_vacp2p_pb2)
    ],
    ids=["spec", "nim", "mvds", "mvds_vacp2p"],
)
def test_generated_code_is_up_to_date(
    generated: FileDescriptor, tmp_path: Path
) -> None:
    """After a change of a .proto run generate.sh."""
    pytest.importorskip("grpc_tools")
    out = tmp_path / "descriptors"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "-I.",
            f"--descriptor_set_out={out}",
            generated.name,
        ],
        cwd=ROOT,
        check=True,
    )
    current = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    committed = descriptor_pb2.FileDescriptorProto.FromString(generated.serialized_pb)
    for message in current.file[0].message_type:
        for field in message.field:
            # Only protoc's own output names the JSON form of each field.
            field.ClearField("json_name")
    assert current.file[0] == committed
