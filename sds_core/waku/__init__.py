"""The Waku message that carries a frame, and the topics on which it is relayed."""

from sds_core.waku.message import MAX_META_BYTES as MAX_META_BYTES
from sds_core.waku.message import RELIABLE_CHANNEL_META as RELIABLE_CHANNEL_META
from sds_core.waku.message import BadContentTopic as BadContentTopic
from sds_core.waku.message import ContentTopic as ContentTopic
from sds_core.waku.message import WakuMessage as WakuMessage
from sds_core.waku.message import autosharded_topic as autosharded_topic
from sds_core.waku.message import message_hash as message_hash
from sds_core.waku.message import parse_content_topic as parse_content_topic
from sds_core.waku.message import pubsub_topic as pubsub_topic
from sds_core.waku.message import shard_of as shard_of
