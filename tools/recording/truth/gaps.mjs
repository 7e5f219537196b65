/** Missing dependencies and their outcomes (docs/figures.md, 6). */

import { messagesIn, names, requestsBefore, REPAIR_WINDOW_MS } from "./tap_view.mjs";

const WARM_UP_MS = 30_000;
const SETTLE_MS = 2_000;
const DEADLINE_MS = 300_000;

/**
 * @param {import("./tap_view.mjs").Frame[]} frames of one channel
 * @param {number} endMs final clock, Unix ms
 */
export function gapsIn(frames, endMs) {
  const outcomes = unseenIn(frames).map((gap) => outcomeOf(gap, frames, endMs));
  const opened = outcomes.filter(({ outcome }) => outcome !== "unsettled");
  const count = (name) => opened.filter(({ outcome }) => outcome === name).length;
  return {
    opened: opened.length,
    late: count("late"),
    repaired: count("repaired"),
    recovered_late: count("recovered_late"),
    lost: count("lost"),
    tap_gap: count("tap_gap"),
    open: count("open"),
    retracted: opened.filter(({ retracted }) => retracted).length,
  };
}

/**
 * @typedef {object} Gap
 * @property {string} id
 * @property {string} sender of the missing message
 * @property {import("./tap_view.mjs").Frame} naming the first frame to name it
 */

/** @returns {Gap[]} ids that were named after the warm-up before the tap saw them */
function unseenIn(frames) {
  const first = new Map(messagesIn(frames).map((message) => [message.id, message]));
  const warmUpEndMs = frames[0].atMs + WARM_UP_MS;
  const isWarmUp = ({ atMs }) => atMs <= warmUpEndMs;
  const warmUpLamport = highestLamport(frames.filter(isWarmUp));
  const gaps = new Map();
  const beforeStart = new Set();
  const earlierHistories = historiesBefore(frames);
  for (const frame of frames.filter((each) => !isWarmUp(each))) {
    // `<=`: a message that names itself has been seen.
    const isSeen = ({ id }) => first.has(id) && first.get(id).index <= frame.index;
    const isAnchor = (entry) =>
      isSeen(entry)
        ? first.get(entry.id).lamport > warmUpLamport
        : gaps.has(entry.id);
    const earlier = earlierHistories.get(frame) ?? [];
    const isCertain = earlier.length > 0 && isAnchor(earlier[0]);
    const certainFrom = frame.history.length - (isCertain ? earlier.length : 0);
    frame.history.forEach((entry, position) => {
      if (isSeen(entry) || gaps.has(entry.id) || beforeStart.has(entry.id)) return;
      const isAfterStart =
        position >= certainFrom || frame.history.slice(0, position).some(isAnchor);
      if (isAfterStart) gaps.set(entry.id, { ...entry, naming: frame });
      else beforeStart.add(entry.id);
    });
  }
  return [...gaps.values()];
}

/**
 * The history of each sender's newest earlier first copy, by first copy, if it is
 * older and not longer: a log of messages only grows. Participants of the recording
 * never begin anew.
 *
 * @returns {Map<import("./tap_view.mjs").Frame, object[]>}
 */
function historiesBefore(frames) {
  const newest = new Map();
  const found = new Map();
  for (const frame of frames) {
    if (frame.copy !== "first" || frame.kind === "ephemeral") continue;
    const before = newest.get(frame.sender);
    if (before && frame.lamport <= before.lamport) continue;
    if (before && before.history.length <= frame.history.length) {
      found.set(frame, before.history);
    }
    newest.set(frame.sender, frame);
  }
  return found;
}

function highestLamport(frames) {
  return frames
    .map(({ lamport }) => lamport ?? 0n)
    .reduce((highest, lamport) => (lamport > highest ? lamport : highest), 0n);
}

function outcomeOf(gap, frames, endMs) {
  const arrival = messagesIn(frames).find(({ id }) => id === gap.id);
  const waitedMs = (arrival?.atMs ?? endMs) - gap.naming.atMs;
  // `<=`: a deadline fires once the clock is past it, so an arrival at it counts.
  if (waitedMs <= SETTLE_MS) return { outcome: "unsettled" };
  if (waitedMs <= DEADLINE_MS) {
    return { outcome: arrival ? arrivalOutcome(arrival, frames) : "open" };
  }
  const outcome = hasEvidenceOfOthers(gap, frames) ? "tap_gap" : "lost";
  return { outcome, retracted: outcome === "lost" && arrival !== undefined };
}

function arrivalOutcome(arrival, frames) {
  const latest = requestsBefore(frames, arrival, arrival.id).at(-1);
  if (!latest) return "late";
  const isLive = arrival.atMs - latest.atMs <= REPAIR_WINDOW_MS;
  return isLive ? "repaired" : "recovered_late";
}

function hasEvidenceOfOthers({ id, sender, naming }, frames) {
  return frames
    .slice(naming.index)
    .filter(({ atMs }) => atMs <= naming.atMs + DEADLINE_MS)
    .filter((frame) => frame.sender !== sender)
    .some((frame) => names(frame, id) || frame.filter.holds(id));
}
