/** Virtual time: a queue of actions; nothing waits for real time. */

/** Runs actions in order of time, and actions of equal time in order of planning. */
export class VirtualClock {
  #nowMs;
  #planned = [];

  /** @param {number} startMs Unix time, whole ms */
  constructor(startMs) {
    this.#nowMs = startMs;
  }

  /** @returns {number} Unix time, whole ms */
  now() {
    return this.#nowMs;
  }

  /**
   * @param {number} timeMs Unix time, whole ms, not in the past
   * @param {() => (void|Promise<void>)} action
   * @returns {{cancelled: boolean}} set `cancelled` to true to cancel the action
   * @throws {RangeError} if the time is in the past or not a whole number
   */
  at(timeMs, action) {
    if (!Number.isInteger(timeMs) || timeMs < this.#nowMs) {
      throw new RangeError(`cannot plan at ${timeMs}: the time is ${this.#nowMs}`);
    }
    const plan = { timeMs, action, cancelled: false };
    this.#planned.splice(this.#firstLaterThan(timeMs), 0, plan);
    return plan;
  }

  /** @param {number} delayMs rounded to whole ms; otherwise as `at` */
  after(delayMs, action) {
    return this.at(this.#nowMs + Math.round(delayMs), action);
  }

  /** @returns {number|undefined} Unix time of the next planned action, ms */
  get next() {
    return this.#planned.find(({ cancelled }) => !cancelled)?.timeMs;
  }

  /** Runs all actions up to and including a time (Unix, ms). */
  async runUntil(endMs) {
    while (this.#planned.length > 0 && this.#planned[0].timeMs <= endMs) {
      const plan = this.#planned.shift();
      if (plan.cancelled) continue;
      this.#nowMs = plan.timeMs;
      // Awaiting each action keeps the library's promises in a fixed order.
      await plan.action();
    }
    this.#nowMs = endMs;
  }

  #firstLaterThan(timeMs) {
    let low = 0;
    let high = this.#planned.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#planned[middle].timeMs <= timeMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Replaces `Date.now` and `Math.random` by virtual ones: the library reads the
 * first for Lamport timestamps and repair times, the second for the ids of sync
 * messages.
 *
 * @param {VirtualClock} clock
 * @param {import("./random.mjs").RandomStream} random
 * @returns {() => void} restores the real functions
 */
export function installVirtualTime(clock, random) {
  const real = { now: Date.now, random: Math.random };
  Date.now = () => clock.now();
  Math.random = () => random.next();
  return () => {
    Date.now = real.now;
    Math.random = real.random;
  };
}
