/** A lossy broadcast network in virtual time, with a log of everything sent. */

import { contentTopic, messageHash } from "./waku.mjs";

/**
 * @typedef {object} Broadcast one transmission of one frame
 * @property {string} channelId
 * @property {string} from the participant that sent it; for a repair this is not
 *   the message's `senderId`
 * @property {"content"|"retry"|"repair"|"sync"|"ephemeral"} cause
 * @property {import("@waku/sds").Message} message the object that was sent
 * @property {Uint8Array} payload the encoded message
 * @property {Uint8Array} hash Waku hash
 * @property {bigint} timestampNs Waku time, Unix ns
 */

/**
 * @typedef {object} Cut a time in which nodes of a channel are cut off
 * @property {string} channelId
 * @property {string[]} nodes
 * @property {"in"|"out"|"both"} direction
 * @property {number} fromMs Unix time
 * @property {number} toMs Unix time; the cut ends just before it
 */

/**
 * @typedef {object} Node a listener on one channel
 * @property {string} name
 * @property {number} loss probability that a broadcast never reaches it
 * @property {[number, number]} delayMs least and greatest delay, ms
 * @property {(broadcast: Broadcast) => (void|Promise<void>)} receive
 */

export class Network {
  /** Every broadcast in order of sending. @type {Broadcast[]} */
  log = [];

  #clock;
  #random;
  #cuts;
  #nodes = new Map();

  /**
   * @param {import("./clock.mjs").VirtualClock} clock
   * @param {import("./random.mjs").RandomStream} random
   * @param {Cut[]} cuts
   */
  constructor(clock, random, cuts) {
    this.#clock = clock;
    this.#random = random;
    this.#cuts = cuts;
  }

  /** @param {Node} node receives the channel's broadcasts from now on */
  join(channelId, node) {
    this.#nodes.set(channelId, [...(this.#nodes.get(channelId) ?? []), node]);
  }

  /**
   * @param {string} channelId
   * @param {string} from the participant that sends; it does not receive its own frame
   * @param {Broadcast["cause"]} cause
   * @param {import("@waku/sds").Message} message
   * @returns {Broadcast} the log entry, whether or not any node receives the frame
   */
  broadcast(channelId, from, cause, message) {
    const payload = message.encode();
    const timestampNs = BigInt(this.#clock.now()) * 1_000_000n;
    const hash = messageHash(payload, contentTopic(channelId), timestampNs);
    const sent = { channelId, from, cause, message };
    const broadcast = { ...sent, payload, hash, timestampNs };
    this.log.push(broadcast);
    const sendable = !this.#isCut(channelId, from, "out");
    for (const node of this.#nodes.get(channelId)) {
      if (node.name !== from) this.#carry(broadcast, node, sendable);
    }
    return broadcast;
  }

  #carry(broadcast, node, sendable) {
    // Drawn even if nothing can be sent: a cut must not change later random numbers.
    const lost = this.#random.chance(node.loss);
    const delayMs = this.#random.integer(...node.delayMs);
    if (lost || !sendable) return;
    this.#clock.after(delayMs, async () => {
      if (this.#isCut(broadcast.channelId, node.name, "in")) return;
      await node.receive(broadcast);
    });
  }

  #isCut(channelId, name, direction) {
    const now = this.#clock.now();
    return this.#cuts.some(
      (cut) =>
        cut.channelId === channelId &&
        cut.nodes.includes(name) &&
        (cut.direction === "both" || cut.direction === direction) &&
        cut.fromMs <= now &&
        now < cut.toMs,
    );
  }
}
