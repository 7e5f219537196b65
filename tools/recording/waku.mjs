/** The Waku fields of a mirrored frame: topics and message hash. */

import { createHash } from "node:crypto";

export const PUBSUB_TOPIC = "/waku/2/rs/2/4";

/** @returns {string} the content topic of a channel */
export function contentTopic(channelId) {
  return `/sds-recording/1/${channelId}/proto`;
}

/**
 * Deterministic message hash of 14/WAKU2-MESSAGE, without `meta`.
 *
 * @param {Uint8Array} payload
 * @param {string} topic content topic
 * @param {bigint} timestampNs the sender's Waku time, Unix ns
 * @returns {Uint8Array} 32 bytes
 */
export function messageHash(payload, topic, timestampNs) {
  const timestamp = Buffer.alloc(8);
  timestamp.writeBigUInt64BE(timestampNs);
  return createHash("sha256")
    .update(PUBSUB_TOPIC)
    .update(payload)
    .update(topic)
    .update(timestamp)
    .digest();
}
