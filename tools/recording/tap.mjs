/** The tap: a receiver that writes a record of every frame that reaches it. */

import { PUBSUB_TOPIC, contentTopic } from "./waku.mjs";

const HEARTBEAT_MS = 5_000;
const REPLICA_DELAY_MS = [50, 4_000];

/**
 * @typedef {object} Sighting a frame that the tap wrote
 * @property {number} atMs record time, Unix ms
 * @property {import("./network.mjs").Broadcast} broadcast
 */

/**
 * @typedef {object} Record a record of the topic (docs/records.md)
 * @property {number} partition
 * @property {number} timestampMs record time, Unix ms
 * @property {string|null} key channel id
 * @property {Uint8Array} value
 * @property {[string, string][]} headers
 */

export class Tap {
  /** @type {Record[]} */
  records = [];
  /** @type {Sighting[]} */
  sightings = [];

  #clock;
  #observer;
  #partitions;
  #random;
  #replicaRate;
  #lastSeq = 0;
  #listening = false;

  /**
   * @param {object} options
   * @param {string} options.observer tap id
   * @param {number} options.partitions number of partitions of the topic
   * @param {number} options.replicaRate probability that a frame is written twice
   * @param {import("./clock.mjs").VirtualClock} options.clock
   * @param {import("./random.mjs").RandomStream} options.random
   */
  constructor({ observer, partitions, replicaRate, clock, random }) {
    this.#observer = observer;
    this.#partitions = partitions;
    this.#replicaRate = replicaRate;
    this.#clock = clock;
    this.#random = random;
  }

  /** Starts to record, with a heartbeat at once. */
  start() {
    this.#listening = true;
    this.#heartbeat();
  }

  /**
   * @param {import("./network.mjs").Broadcast} broadcast one that reached the tap
   * @param {number} partition partition of its channel
   */
  receive(broadcast, partition) {
    if (!this.#listening) return;
    this.#write(broadcast, partition);
    if (this.#random.chance(this.#replicaRate)) {
      const delayMs = this.#random.integer(...REPLICA_DELAY_MS);
      this.#clock.after(delayMs, () => this.#write(broadcast, partition));
    }
  }

  #write(broadcast, partition) {
    this.#lastSeq += 1;
    this.sightings.push({ atMs: this.#clock.now(), broadcast });
    this.records.push({
      partition,
      timestampMs: this.#clock.now(),
      key: broadcast.channelId,
      value: broadcast.payload,
      headers: [
        ["observer", this.#observer],
        ["seq", String(this.#lastSeq)],
        ["source", "replay"],
        ["waku-hash", `0x${Buffer.from(broadcast.hash).toString("hex")}`],
        ["waku-timestamp", String(broadcast.timestampNs)],
        ["pubsub-topic", PUBSUB_TOPIC],
        ["content-topic", contentTopic(broadcast.channelId)],
      ],
    });
  }

  #heartbeat() {
    for (let partition = 0; partition < this.#partitions; partition += 1) {
      this.records.push({
        partition,
        timestampMs: this.#clock.now(),
        key: null,
        value: new Uint8Array(),
        headers: [
          ["observer", this.#observer],
          ["seq", String(this.#lastSeq)],
          ["kind", "heartbeat"],
        ],
      });
    }
    this.#clock.after(HEARTBEAT_MS, () => this.#heartbeat());
  }
}
