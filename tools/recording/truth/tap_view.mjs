/**
 * The frames of one channel that the tap saw, and which copy of its message
 * each is (docs/figures.md, 2 and 7).
 */

import { isContentMessage, isSyncMessage } from "@waku/sds";

import { Filter } from "./filter.mjs";

/** T_max 120 s + response sweep 10 s + transport 5 s. */
export const REPAIR_WINDOW_MS = 135_000;

/**
 * @typedef {object} Frame
 * @property {number} index in topic order
 * @property {number} atMs record time, Unix ms
 * @property {"content"|"sync"|"ephemeral"} kind
 * @property {string} id
 * @property {string} sender
 * @property {bigint|undefined} lamport
 * @property {{id: string, sender: string|undefined}[]} history oldest first
 * @property {string[]} requests distinct ids
 * @property {Filter} filter
 * @property {string} sentAs why the sender sent it: the broadcast's `cause`
 * @property {"first"|"rebroadcast"|"collision"} copy
 */

/**
 * Returns the frames of a channel in topic order, without replicas.
 *
 * @param {import("../tap.mjs").Sighting[]} sightings those of this channel
 * @returns {{frames: Frame[], replicas: number}}
 */
export function viewOf(sightings) {
  const hashes = new Set();
  const firstContent = new Map();
  const frames = [];
  for (const { atMs, broadcast } of sightings) {
    const hash = Buffer.from(broadcast.hash).toString("hex");
    if (hashes.has(hash)) continue;
    hashes.add(hash);
    const frame = frameOf(broadcast, atMs, frames.length);
    frame.copy = copyOf(frame, firstContent);
    frames.push(frame);
  }
  return { frames, replicas: sightings.length - frames.length };
}

function frameOf({ message, cause }, atMs, index) {
  return {
    index,
    atMs,
    kind: kindOf(message),
    id: message.messageId,
    sender: message.senderId,
    lamport: message.lamportTimestamp,
    history: message.causalHistory.map(({ messageId, senderId }) => ({
      id: messageId,
      sender: senderId,
    })),
    requests: [...new Set(message.repairRequest.map(({ messageId }) => messageId))],
    filter: new Filter(message.bloomFilter),
    sentAs: cause,
  };
}

function kindOf(message) {
  if (isContentMessage(message)) return "content";
  return isSyncMessage(message) ? "sync" : "ephemeral";
}

function copyOf(frame, firstContent) {
  if (frame.kind !== "content") return "first";
  const first = firstContent.get(frame.id);
  if (!first) {
    firstContent.set(frame.id, frame);
    return "first";
  }
  const same = first.sender === frame.sender && first.lamport === frame.lamport;
  return same ? "rebroadcast" : "collision";
}

/** @returns {Frame[]} the first copies of content frames: one per message */
export function messagesIn(frames) {
  return frames.filter(({ kind, copy }) => kind === "content" && copy === "first");
}

/** @returns {Frame[]} */
export function rebroadcastsIn(frames) {
  return frames.filter(({ copy }) => copy === "rebroadcast");
}

/** @returns {boolean} whether the frame's causal history names the id */
export function names(frame, id) {
  return frame.history.some((entry) => entry.id === id);
}

/** @returns {Frame[]} the frames before this one that request the id */
export function requestsBefore(frames, frame, id) {
  return frames.slice(0, frame.index).filter(({ requests }) => requests.includes(id));
}

/** @returns {boolean} whether a request for the frame's id is in the repair window */
export function isRequested(frames, frame) {
  const latest = requestsBefore(frames, frame, frame.id).at(-1);
  return latest !== undefined && frame.atMs - latest.atMs <= REPAIR_WINDOW_MS;
}
