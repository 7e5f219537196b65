/**
 * What happens in the recording. Times are in seconds since the participants
 * start. Only transport and texts are defined here; `@waku/sds` makes the frames.
 */

/**
 * @typedef {object} Outage
 * @property {string[]} nodes participants, or `TAP`
 * @property {"in"|"out"|"both"} direction the direction that is cut
 * @property {number} from
 * @property {number} to
 */

/**
 * @typedef {object} Line a message sent at a fixed time
 * @property {number} at
 * @property {string} who
 * @property {string} [text] random if absent
 * @property {number} [times] number of messages, 50 ms apart (default 1)
 * @property {boolean} [ephemeral]
 */

/**
 * @typedef {object} ChannelPlan
 * @property {string} id
 * @property {number} partition
 * @property {string[]} participants
 * @property {import("@waku/sds").MessageChannelOptions} options
 * @property {number} loss probability per broadcast and participant
 * @property {number} tapLoss probability per broadcast
 * @property {{from: number, to: number, every: number}[]} talk times with
 *   random messages; `every` is the mean number of seconds between two
 * @property {Line[]} lines
 * @property {Outage[]} outages
 * @property {{who: string, at: number}[]} departures participants who leave for good
 */

/** The tap's name among the nodes of an outage. */
export const TAP = "the tap";

export const SEED = 20_260_115;
export const START_MS = Date.UTC(2026, 0, 15, 12, 0, 0);
export const OBSERVER = "tap-1";
export const PARTITIONS = 4;
export const REPLICA_RATE = 0.04;
export const PARTICIPANT_DELAY_MS = [30, 600];
export const TAP_DELAY_MS = [0, 300];

/** The tap starts late, so that histories name messages from before its start. */
export const TAP_START = 30;
export const END = 900;

/** More messages than a causal history holds: some are acknowledged by filter only. */
const BURST = 16;

const lively = {
  id: "town-square",
  partition: 0,
  participants: ["alice", "bob", "carol", "dave", "erin"],
  options: { causalHistorySize: 10 },
  loss: 0.03,
  tapLoss: 0.03,
  talk: [
    { from: 5, to: 560, every: 4 },
    { from: 560, to: 895, every: 20 },
  ],
  lines: [
    // The id is the hash of the text, so these three messages have the same id.
    { at: 100, who: "bob", text: "ok" },
    { at: 260, who: "carol", text: "ok" },
    { at: 420, who: "bob", text: "ok" },
    { at: 150, who: "alice", times: BURST },
    { at: 430, who: "carol", times: BURST },
    { at: 200, who: "dave", text: "dave is typing", ephemeral: true },
    { at: 300, who: "erin", text: "erin is typing", ephemeral: true },
    { at: 500, who: "erin", text: "erin is typing still", ephemeral: true },
    // At the end of the recording one gap is open and some messages are in flight.
    { at: 875.5, who: "alice" },
    { at: 877, who: "bob" },
    { at: 897, who: "dave" },
    { at: 899, who: "erin" },
  ],
  outages: [
    { nodes: [TAP, "erin"], direction: "in", from: 180, to: 186 },
    { nodes: [TAP], direction: "in", from: 330, to: 337 },
    { nodes: ["dave"], direction: "both", from: 340, to: 410 },
    { nodes: [TAP, "bob"], direction: "in", from: 470, to: 474 },
    { nodes: [TAP], direction: "in", from: 875, to: 876.5 },
  ],
  departures: [],
};

const lossy = {
  id: "mountain-hut",
  partition: 1,
  participants: ["fay", "gus", "hal", "ivy"],
  // After this time the library drops a waiting message, and requests it ever after.
  options: { causalHistorySize: 10, timeoutForLostMessagesMs: 60_000 },
  loss: 0.18,
  tapLoss: 0.12,
  talk: [{ from: 8, to: 550, every: 10 }],
  lines: [],
  outages: [{ nodes: ["hal"], direction: "both", from: 250, to: 330 }],
  departures: [],
};

const broken = {
  id: "broken-bridge",
  partition: 1,
  participants: ["ida", "jon", "kim", "lea"],
  options: { causalHistorySize: 10 },
  loss: 0,
  tapLoss: 0,
  talk: [{ from: 3, to: 60, every: 9 }],
  lines: [
    // Seen after the warm-up, so that dependencies after it can count as gaps.
    { at: 80, who: "ida" },
    // Kim's first message reaches nobody, her second names it, then she leaves.
    { at: 85, who: "kim" },
    { at: 88, who: "kim" },
    // The same happens to Lea, who comes back after the loss is declared.
    { at: 95, who: "lea" },
    { at: 98, who: "lea" },
    { at: 100, who: "ida" },
    { at: 118, who: "jon" },
    { at: 160, who: "ida" },
    { at: 230, who: "jon" },
    { at: 330, who: "ida" },
    // Only Jon receives this. His response to Lea's request reaches nobody, and
    // Ida's ninth retry comes long after the request.
    { at: 545, who: "ida" },
    { at: 548, who: "jon" },
  ],
  outages: [
    { nodes: ["kim"], direction: "out", from: 84, to: 86 },
    { nodes: ["lea"], direction: "out", from: 94, to: 96 },
    { nodes: ["lea"], direction: "both", from: 99, to: 402 },
    { nodes: ["lea", TAP], direction: "in", from: 544, to: 546 },
    { nodes: ["ida"], direction: "both", from: 546, to: 810 },
    { nodes: ["jon"], direction: "out", from: 551, to: 820 },
  ],
  departures: [{ who: "kim", at: 89 }],
};

const pair = {
  id: "ana-and-ben",
  partition: 2,
  participants: ["ana", "ben"],
  options: { causalHistorySize: 5 },
  loss: 0.08,
  tapLoss: 0.04,
  talk: [{ from: 10, to: 895, every: 22 }],
  lines: [
    { at: 150, who: "ana" },
    { at: 240, who: "ben", times: BURST },
    { at: 400, who: "ana", times: 6 },
  ],
  outages: [
    // Ana gets no acknowledgement from Ben, so she retries, and the tap sees the retry.
    { nodes: [TAP], direction: "in", from: 149, to: 151 },
    { nodes: ["ana"], direction: "in", from: 149, to: 185 },
    // A history in which all ids are unseen.
    { nodes: [TAP], direction: "in", from: 399, to: 401 },
  ],
  departures: [],
};

const quiet = {
  id: "night-shift",
  partition: 2,
  participants: ["uma", "vic", "wes"],
  options: { causalHistorySize: 10 },
  loss: 0.02,
  tapLoss: 0.02,
  talk: [{ from: 4, to: 230, every: 15 }],
  lines: [
    // Only the tap receives Wes's last message, though the others continue.
    { at: 180, who: "wes" },
    // Vic has left, so nobody acknowledges this; Uma retries until she leaves too.
    { at: 300, who: "uma" },
  ],
  outages: [{ nodes: ["uma", "vic"], direction: "in", from: 179.5, to: 181 }],
  departures: [
    { who: "wes", at: 182 },
    { who: "vic", at: 290 },
    { who: "uma", at: 480 },
  ],
};

/** @type {ChannelPlan[]} the last partition has no channel, only heartbeats */
export const CHANNELS = [lively, lossy, broken, pair, quiet];
