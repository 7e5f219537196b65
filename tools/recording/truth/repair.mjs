/** Repair requests, episodes and responses (docs/figures.md, 7). */

import { isRequested, REPAIR_WINDOW_MS } from "./tap_view.mjs";

/**
 * @param {import("./tap_view.mjs").Frame[]} frames of one channel
 * @param {number} endMs final clock, Unix ms
 */
export function repairIn(frames, endMs) {
  const requesters = frames.flatMap((frame) =>
    frame.requests.map((id) => ({ frame, id })),
  );
  const forReceived = requesters.filter(({ frame, id }) => frame.filter.holds(id));
  const requestedIds = new Set(requesters.map(({ id }) => id));
  const count = { answered: 0, expired: 0, responses: 0, redundant: 0 };
  for (const id of requestedIds) countEpisodes(id, frames, endMs, count);
  return {
    requests: requesters.length,
    requests_for_received: forReceived.length,
    ...count,
  };
}

function countEpisodes(id, frames, endMs, count) {
  /** Time of the latest request of the open episode, Unix ms. */
  let openMs;
  const expireBefore = (clockMs) => {
    if (openMs === undefined || clockMs - openMs <= REPAIR_WINDOW_MS) return;
    count.expired += 1;
    openMs = undefined;
  };
  for (const frame of frames) {
    expireBefore(frame.atMs);
    if (isCopyOf(id, frame) && isRequested(frames, frame)) {
      count.responses += 1;
      if (openMs === undefined) count.redundant += 1;
      else count.answered += 1;
      openMs = undefined;
    }
    if (frame.requests.includes(id)) openMs = frame.atMs;
  }
  expireBefore(endMs);
}

function isCopyOf(id, frame) {
  return frame.kind === "content" && frame.id === id && frame.copy !== "collision";
}
