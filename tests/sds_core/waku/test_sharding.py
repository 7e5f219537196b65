"""From content topics to shards."""

from __future__ import annotations

import pytest

from sds_core.waku import (
    BadContentTopic,
    ContentTopic,
    autosharded_topic,
    parse_content_topic,
    shard_of,
)


# What `contentTopicToShardIndex` of @waku/utils 0.0.27 gives for 8, 7 and 1024 shards;
# it comes with the npm packages of tools/recording:
# import { contentTopicToShardIndex } from "@waku/utils".
@pytest.mark.parametrize(
    ("topic", "of_8", "of_7", "of_1024"),
    [
        ("/toychat/2/huilong/proto", 3, 3, 1011),
        ("/waku/2/default-content/proto", 1, 3, 921),
        ("/sds-simulator/1/ch/proto", 1, 0, 1017),
        ("/0/myapp/1/mytopic/cbor", 0, 1, 296),
        ("/status/1/0x1234abcd/rfc26", 5, 0, 573),
        ("/myapp/latest/mytopic/cbor", 0, 0, 680),
        ("/ümlaut/é/x/y", 6, 1, 406),
    ],
)
def test_shard_is_that_of_js_waku(
    topic: str, of_8: int, of_7: int, of_1024: int
) -> None:
    """For any number of shards, with or without generation, non-ASCII text too."""
    parsed = parse_content_topic(topic)
    assert [shard_of(parsed, n) for n in (8, 7, 1024)] == [of_8, of_7, of_1024]
    assert autosharded_topic(topic, 1, 8) == f"/waku/2/rs/1/{of_8}"


def test_generation_is_not_hashed() -> None:
    """With and without it the shard is the same."""
    parts = ContentTopic("app", "2", "name", "proto")
    assert parse_content_topic("/app/2/name/proto") == parts
    assert parse_content_topic("/0/app/2/name/proto") == parts


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "app/2/name/proto",
        "0/app/2/name/proto",
        "/app/2/name",
        "/1/app/2/name/proto",
        "/x/app/2/name/proto",
        "//app/2/name/proto",
        "//2/name/proto",
        "/app//name/proto",
        "/app/2//proto",
        "/app/2/name/",
        "/0/app/2/name/proto/more",
    ],
)
def test_other_forms_are_refused(topic: str) -> None:
    """The error has the topic and the expected form."""
    with pytest.raises(BadContentTopic) as caught:
        parse_content_topic(topic)
    assert caught.value.topic == topic
    assert repr(topic) in str(caught.value)
    assert "/application/version/name/encoding" in str(caught.value)
