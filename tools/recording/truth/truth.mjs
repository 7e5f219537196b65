/**
 * The truth about a recording: the report (docs/figures.md, 11) that a correct
 * monitor makes once it has read the whole topic. It is computed from the
 * objects that the participants sent and from which of them reached the tap.
 * Every figure scans the whole list again: slow, but easy to check.
 */

import { acknowledgementsIn } from "./acknowledgements.mjs";
import { gapsIn } from "./gaps.mjs";
import { repairIn } from "./repair.mjs";
import { isRequested, messagesIn, rebroadcastsIn, viewOf } from "./tap_view.mjs";

/**
 * @param {import("../tap.mjs").Tap} tap after the simulation
 * @param {number} seed seed of the scenario
 */
export function truthOf({ records, sightings }, seed) {
  // The last records are heartbeats, which move the clock too.
  const endMs = records.at(-1).timestampMs;
  const ids = [...new Set(sightings.map(({ broadcast }) => broadcast.channelId))].sort();
  const channels = Object.fromEntries(
    ids.map((id) => [id, channelTruth(sightingsOf(id, sightings), endMs)]),
  );
  return {
    scenario: "recorded",
    seed,
    window: { first_event: records[0].timestampMs, last_event: endMs },
    channels,
    totals: Object.values(channels).map(withoutLatencies).reduce(sum),
  };
}

function sightingsOf(channelId, sightings) {
  return sightings.filter(({ broadcast }) => broadcast.channelId === channelId);
}

function channelTruth(sightings, endMs) {
  const { frames, replicas } = viewOf(sightings);
  return {
    frames: countKinds(frames),
    messages: messagesIn(frames).length,
    replicas,
    rebroadcasts: countCauses(frames),
    message_id_collisions: frames.filter(({ copy }) => copy === "collision").length,
    ...acknowledgementsIn(frames, endMs),
    gaps: gapsIn(frames, endMs),
    repair: repairIn(frames, endMs),
    participants: sendersOf(frames).size,
    sender_side: senderSide(frames),
  };
}

function countKinds(frames) {
  const count = (wanted) => frames.filter(({ kind }) => kind === wanted).length;
  return {
    content: count("content"),
    sync: count("sync"),
    ephemeral: count("ephemeral"),
  };
}

function countCauses(frames) {
  const causes = rebroadcastsIn(frames).map((frame) => isRequested(frames, frame));
  const repair = causes.filter(Boolean).length;
  return { repair, retry: causes.length - repair };
}

function sendersOf(frames) {
  return new Set(
    frames.filter(({ copy }) => copy === "first").map(({ sender }) => sender),
  );
}

/** Counts why senders sent the frames that the tap saw; the bytes do not contain it. */
function senderSide(frames) {
  const countAs = (of) => {
    const count = (cause) => of.filter(({ sentAs }) => sentAs === cause).length;
    return { content: count("content"), repair: count("repair"), retry: count("retry") };
  };
  return {
    first_copies: countAs(messagesIn(frames)),
    rebroadcasts: countAs(rebroadcastsIn(frames)),
  };
}

function withoutLatencies({ ack_latencies: _, ...counts }) {
  return counts;
}

/** Adds two trees of numbers of the same shape. */
function sum(one, other) {
  if (typeof one === "number") return one + other;
  return Object.fromEntries(
    Object.keys(one).map((key) => [key, sum(one[key], other[key])]),
  );
}
