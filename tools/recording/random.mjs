/**
 * Seeded random numbers, one stream per purpose: a change in one part of the
 * scenario does not change the random numbers of other parts.
 */

import { createHash } from "node:crypto";

/** A stream of pseudo-random numbers (mulberry32). */
export class RandomStream {
  #state;

  /** @param {number} state 32-bit starting state */
  constructor(state) {
    this.#state = state >>> 0;
  }

  /** @returns {number} in [0, 1) */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @returns {boolean} true with the given probability */
  chance(probability) {
    return this.next() < probability;
  }

  /** @returns {number} an integer in [low, high] */
  integer(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** @returns {number} an exponentially distributed number, rounded to an integer */
  exponential(mean) {
    return Math.round(-Math.log(1 - this.next()) * mean);
  }

  /** @returns one of the items */
  pick(items) {
    return items[this.integer(0, items.length - 1)];
  }
}

/**
 * @param {number} seed seed of the whole scenario
 * @param {string} purpose name of the stream
 */
export function randomStream(seed, purpose) {
  const digest = createHash("sha256").update(`${seed}:${purpose}`).digest();
  return new RandomStream(digest.readUInt32BE(0));
}
