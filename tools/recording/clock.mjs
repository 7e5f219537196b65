/** Virtual time: a queue of actions, and nothing ever sleeps. */

/** Runs actions in order of their time; equal times in order of planning. */
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
   * @returns {{cancelled: boolean}} set `cancelled` to call the action off
   */
  at(timeMs, action) {
    if (!Number.isInteger(timeMs) || timeMs < this.#nowMs) {
      throw new RangeError(`cannot plan at ${timeMs}, it is ${this.#nowMs}`);
    }
    const plan = { timeMs, action, cancelled: false };
    this.#planned.splice(this.#firstLaterThan(timeMs), 0, plan);
    return plan;
  }

  /** @param {number} delayMs rounded to whole ms; otherwise as `at` */
  after(delayMs, action) {
    return this.at(this.#nowMs + Math.round(delayMs), action);
  }

  /** @returns {number|undefined} Unix time in ms of what is planned next */
  get next() {
    return this.#planned.find(({ cancelled }) => !cancelled)?.timeMs;
  }

  /** Runs everything planned up to and at a time (Unix, ms). */
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
 * Makes the library live in virtual time: it reads `Date.now` for lamports and
 * repair times, and `Math.random` for the ids of sync messages.
 *
 * @param {VirtualClock} clock
 * @param {import("./random.mjs").RandomStream} random
 * @returns {() => void} puts the real ones back
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
