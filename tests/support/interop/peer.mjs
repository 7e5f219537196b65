/**
 * Hosts real `@waku/sds` participants in virtual time, on one channel.
 *
 *     node peer.mjs <start, Unix ms> <seed> <channel id>
 *
 * A line of JSON in is a command (`COMMANDS`), at a time (`at_ms`, never before the
 * last one); everything planned until then runs first. The line of JSON out says what
 * came of it: the frames to broadcast, what the library noted, the command's own
 * result, and when something is planned next. Bytes are base64.
 */

import { createInterface } from "node:readline";

import {
  VirtualClock,
  installVirtualTime,
} from "../../../tools/recording/clock.mjs";
import {
  Message,
  MessageChannelEvent,
  Participant,
} from "../../../tools/recording/participant.mjs";
import { randomStream } from "../../../tools/recording/random.mjs";
import {
  contentTopic,
  messageHash,
} from "../../../tools/recording/waku.mjs";

const [startMs, seed, channelId] = process.argv.slice(2);
const clock = new VirtualClock(Number(startMs));
const participants = new Map();
const saidMissing = new Set();
let broadcasts = [];
let notes = [];

/** The library's events that are passed on: a name, and one note per message id. */
const NOTED = new Map([
  [MessageChannelEvent.InMessageDelivered, ["delivered", (id) => [{ id }]]],
  [MessageChannelEvent.OutMessageAcknowledged, ["acknowledged", (id) => [{ id }]]],
  [
    MessageChannelEvent.OutMessagePossiblyAcknowledged,
    ["possibly acknowledged", ({ messageId }) => [{ id: messageId }]],
  ],
  [MessageChannelEvent.InMessageMissing, ["missing", idsOf]],
  [MessageChannelEvent.InSyncReceived, ["sync received", (sync) => idsOf([sync])]],
  [
    MessageChannelEvent.RepairResponseSent,
    ["answered", ({ messageId }) => [{ id: messageId }]],
  ],
  // 0.0.8 names these two otherwise than its own list of events does.
  [
    "RepairRequestQueued",
    ["request queued", ({ messageId, tReq }) => [{ id: messageId, due_ms: tReq }]],
  ],
  [
    "RepairResponseQueued",
    ["answer queued", ({ messageId, tResp }) => [{ id: messageId, due_ms: tResp }]],
  ],
]);

/** Stands where the recording has its network: the other end of the pipe is ours. */
const network = {
  broadcast(_, from, cause, message) {
    const payload = message.encode();
    const timestampNs = BigInt(clock.now()) * 1_000_000n;
    const hash = messageHash(payload, contentTopic(channelId), timestampNs);
    broadcasts.push({ from, cause, value: base64(payload), hint: base64(hash) });
    return { hash };
  },
};

const COMMANDS = {
  enter({ name, options }) {
    const random = randomStream(seed, name);
    const place = { channelId, name, options, clock, network, random };
    const participant = new Participant(place);
    participants.set(name, participant);
    for (const [event, [what, notesOf]] of NOTED) {
      participant.on(event, (detail) => {
        for (const note of notesOf(detail)) take({ by: name, what, ...note });
      });
    }
    participant.enter();
  },
  leave: ({ name }) => participants.get(name).leave(),
  say: ({ name, text }) => participants.get(name).say(text),
  sayEphemeral: ({ name, text }) => participants.get(name).sayEphemeral(text),
  receive: ({ name, value, hint }) =>
    participants
      .get(name)
      .receive({ payload: Buffer.from(value, "base64"), hash: Buffer.from(hint, "base64") }),
  run() {},
  log: ({ name }) => participants.get(name).log,
  /** Reads frames and writes them again. */
  recode: ({ values }) =>
    values.map((value) => base64(Message.decode(Buffer.from(value, "base64")).encode())),
};

installVirtualTime(clock, randomStream(seed, "library"));
for await (const line of createInterface({ input: process.stdin })) {
  const { at_ms: atMs, command, ...rest } = JSON.parse(line);
  await clock.runUntil(atMs);
  const result = await COMMANDS[command](rest);
  const answer = { broadcasts, notes, result, next_ms: clock.next };
  broadcasts = [];
  notes = [];
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

function take(note) {
  // The library says what is missing again at every sweep.
  if (note.what === "missing") {
    const key = `${note.by} ${note.id}`;
    if (saidMissing.has(key)) return;
    saidMissing.add(key);
  }
  notes.push(note);
}

function idsOf(messages) {
  return messages.map(({ messageId }) => ({ id: messageId }));
}

function base64(bytes) {
  return Buffer.from(bytes).toString("base64");
}
