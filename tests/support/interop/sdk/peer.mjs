/**
 * Hosts `ReliableChannel` of `@waku/sdk` in virtual time, on one channel.
 *
 *     node peer.mjs <start, Unix ms> <seed> <channel id> <content topic>
 *
 * A line of JSON in is a command (`COMMANDS`), at a time (`at_ms`, never before the last
 * one); everything planned until then runs first. The line of JSON out says what came of
 * it: the Waku messages that were sent, the events, the command's own result, and when
 * something is planned next. Bytes are base64.
 */

import { createInterface } from "node:readline";

import {
  VirtualClock,
  installVirtualTime,
} from "../../../../tools/recording/clock.mjs";
import { randomStream } from "../../../../tools/recording/random.mjs";

const [startMs, seed, channelId, contentTopic] = process.argv.slice(2);
const clock = new VirtualClock(Number(startMs));
installVirtualTime(clock, randomStream(seed, "sdk"));
const settle = installVirtualTimers(clock);

const { ReliableChannel } = await import("@waku/sdk");
const { createDecoder, createEncoder } = await import("@waku/core");
const { createRoutingInfo } = await import("@waku/utils");

const routingInfo = createRoutingInfo(
  { clusterId: 1, numShardsInCluster: 8 },
  { contentTopic },
);
const encoder = createEncoder({ contentTopic, routingInfo });
const decoder = createDecoder(contentTopic, routingInfo);

const EVENTS = [
  "sending-message",
  "message-sent",
  "message-possibly-acknowledged",
  "message-acknowledged",
  "sending-message-irrecoverable-error",
  "message-received",
  "irretrievable-message",
];

const participants = new Map();
/** The store of all, by hash in hexadecimal. */
const stored = new Map();
let sent = [];
let events = [];

/** An in-memory node: it sends to the pipe, and its store is told what the network has. */
function nodeOf(name) {
  return {
    lightPush: {
      async send(by, message) {
        sent.push({ from: name, ...plain(await by.toProtoObj(message)) });
        return { successes: ["pipe"], failures: [] };
      },
    },
    filter: {
      async subscribe(_, callback) {
        participants.get(name).callback = callback;
        return true;
      },
    },
    store: {
      async *queryGenerator(_, options) {
        participants.get(name).queries += 1;
        const wanted = options.messageHashes?.map(hex);
        const found = [...stored.entries()].filter(([hash, { timestamp }]) => {
          if (wanted !== undefined) return wanted.includes(hash);
          const atMs = Number(timestamp / 1_000_000n);
          return options.timeStart <= atMs && atMs <= options.timeEnd;
        });
        for (let first = 0; first < found.length; first += 20) {
          yield found.slice(first, first + 20).map(([, message]) => decoded(message));
        }
      },
    },
    peerManager: { events: new EventTarget() },
    events: new EventTarget(),
  };
}

const COMMANDS = {
  async enter({ name, options }) {
    const node = nodeOf(name);
    participants.set(name, { node, queries: 0 });
    const channel = await ReliableChannel.create(
      node, channelId, name, encoder, decoder, { ...options, autoStart: false },
    );
    participants.get(name).channel = channel;
    for (const event of EVENTS) {
      channel.addEventListener(event, ({ detail }) => {
        events.push({ by: name, name: event, ...described(event, detail) });
      });
    }
    await channel.start();
  },
  connect({ name }) {
    const event = new CustomEvent("store:connect", { detail: "store" });
    participants.get(name).node.peerManager.events.dispatchEvent(event);
  },
  say: ({ name, payload }) => participants.get(name).channel.send(bytes(payload)),
  async receive({ name, message }) {
    await participants.get(name).callback(await decoded(proto(message)));
  },
  store({ hash, message }) {
    stored.set(Buffer.from(hash, "base64").toString("hex"), proto(message));
  },
  queries: ({ name }) => participants.get(name).queries,
  run() {},
};

for await (const line of createInterface({ input: process.stdin })) {
  const { at_ms: atMs, command, ...rest } = JSON.parse(line);
  await clock.runUntil(atMs);
  const result = await COMMANDS[command](rest);
  await settle();
  const answer = { sent, events, result, next_ms: clock.next };
  sent = [];
  events = [];
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
// Its libraries may have left real timers.
process.exit();

function described(event, detail) {
  if (event === "message-received") return { payload: base64(detail.payload) };
  if (typeof detail === "string") return { id: detail };
  return { id: detail.messageId, error: detail.error };
}

function decoded(message) {
  return decoder.fromProtoObj(routingInfo.pubsubTopic, message);
}

function plain({ payload, timestamp, ephemeral }) {
  return { payload: base64(payload), timestamp: String(timestamp), ephemeral };
}

function proto({ payload, timestamp, ephemeral, meta }) {
  const message = { payload: bytes(payload), timestamp: BigInt(timestamp), ephemeral };
  return { ...message, contentTopic, version: 0, meta: meta ? bytes(meta) : undefined };
}

function bytes(text) {
  return new Uint8Array(Buffer.from(text, "base64"));
}

function base64(value) {
  return Buffer.from(value).toString("base64");
}

function hex(value) {
  return Buffer.from(value).toString("hex");
}

/**
 * Replaces timers and `new Date()` by virtual ones.
 *
 * @returns {() => Promise<void>} waits until all promises without timers are settled
 */
function installVirtualTimers(time) {
  const immediate = setImmediate;
  const RealDate = Date;
  const settled = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      await new Promise((resolve) => immediate(resolve));
    }
  };
  const planned = (delayMs, action) => {
    const plan = time.after(Math.max(0, delayMs ?? 0), async () => {
      action();
      await settled();
    });
    return plan;
  };
  globalThis.setTimeout = (action, delayMs, ...rest) =>
    planned(delayMs, () => action(...rest));
  globalThis.setInterval = (action, delayMs, ...rest) => {
    const handle = { cancelled: false, plan: undefined };
    const again = () => {
      handle.plan = planned(delayMs, () => {
        if (handle.cancelled) return;
        action(...rest);
        again();
      });
    };
    again();
    return handle;
  };
  const cancel = (handle) => {
    if (handle === undefined || handle === null) return;
    handle.cancelled = true;
    if (handle.plan !== undefined) handle.plan.cancelled = true;
  };
  globalThis.clearTimeout = cancel;
  globalThis.clearInterval = cancel;
  globalThis.Date = class extends RealDate {
    constructor(...values) {
      super(...(values.length === 0 ? [time.now()] : values));
    }

    static now() {
      return time.now();
    }
  };
  return settled;
}
