/** Acknowledgements and fates of messages (docs/figures.md, 4). */

import { messagesIn, names } from "./tap_view.mjs";

const DEADLINE_MS = 120_000;
const SILENCE_MS = 300_000;
const PROBABLE_RATE = 1e-6;
const PROBABLE_PARTICIPANTS = 2;

/**
 * @param {import("./tap_view.mjs").Frame[]} frames of one channel
 * @param {number} endMs final clock, Unix ms
 */
export function acknowledgementsIn(frames, endMs) {
  const found = messagesIn(frames)
    .map((message) => acknowledgementOf(message, frames, endMs))
    .sort((one, other) => one.message.atMs - other.message.atMs);
  const count = (test) => found.filter(test).length;
  return {
    acknowledged: {
      definite: count(({ definite }) => definite),
      probable: count(({ probable }) => probable),
    },
    acknowledged_in_time: count(({ fate }) => fate === "in_time"),
    unacknowledged: count(({ fate }) => fate === "unacknowledged"),
    unwitnessed: count(({ fate }) => fate === "unwitnessed"),
    in_flight: count(({ fate }) => fate === "in_flight"),
    ack_latencies: found
      .filter(({ definite }) => definite)
      .map(({ message, definite }) => [message.id, latencyMs(message, definite)]),
  };
}

function acknowledgementOf(message, frames, endMs) {
  const definite = definiteFor(message, frames);
  const probable = probableFor(message, frames, definite);
  const fate = fateOf(message, frames, probable ?? definite, endMs);
  return { message, definite, probable, fate };
}

/** @returns the first frame of another participant that names the message */
function definiteFor(message, frames) {
  return frames.find(
    (frame) => frame.sender !== message.sender && names(frame, message.id),
  );
}

/** @returns the frame that makes it probable, if it is not definite before */
function probableFor(message, frames, definite) {
  const needed = participantsNeeded(message, frames);
  const holders = new Set();
  let rate = 1;
  for (const frame of frames.slice(message.index + 1)) {
    if (definite && definite.index <= frame.index) return undefined;
    if (frame.sender === message.sender || holders.has(frame.sender)) continue;
    if (!frame.filter.holds(message.id)) continue;
    holders.add(frame.sender);
    rate *= frame.filter.falsePositiveRate();
    if (rate < PROBABLE_RATE && holders.size >= needed) return frame;
  }
  return undefined;
}

function participantsNeeded(message, frames) {
  const active = new Set(
    frames
      .slice(0, message.index)
      .filter(({ copy }) => copy === "first")
      .map(({ sender }) => sender),
  );
  active.delete(message.sender);
  return Math.max(1, Math.min(PROBABLE_PARTICIPANTS, active.size));
}

function fateOf(message, frames, evidence, endMs) {
  const deadlineMs = message.atMs + DEADLINE_MS;
  if (evidence && evidence.atMs <= deadlineMs) return "in_time";
  if (deadlineMs >= endMs) return "in_flight";
  const opportunity = frames.some(
    (frame) =>
      frame.copy === "first" &&
      frame.sender !== message.sender &&
      frame.lamport > message.lamport &&
      frame.atMs > message.atMs &&
      frame.atMs <= deadlineMs &&
      !names(frame, message.id) &&
      !frame.filter.holds(message.id) &&
      returnedMs(frame, frames) <= message.atMs,
  );
  return opportunity ? "unacknowledged" : "unwitnessed";
}

/** @returns {number} when the sender last spoke after a long silence; 0 if never */
function returnedMs(frame, frames) {
  const spoken = frames.filter(
    ({ index, copy, sender }) =>
      index <= frame.index && copy === "first" && sender === frame.sender,
  );
  const returns = spoken.filter(
    ({ atMs }, place) => place > 0 && atMs - spoken[place - 1].atMs > SILENCE_MS,
  );
  return returns.at(-1)?.atMs ?? 0;
}

function latencyMs(message, evidence) {
  return Math.max(0, evidence.atMs - message.atMs);
}
