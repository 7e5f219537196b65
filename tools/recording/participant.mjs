/** A real `@waku/sds` participant, driven as the Waku SDK drives it. */

import { Message, MessageChannel, MessageChannelEvent } from "@waku/sds";

export { Message, MessageChannelEvent };

const RETRY_MS = 30_000;
const MAX_RETRIES = 10;
const SYNC_MS = 30_000;
/** Frames that arrived are processed together after this time. */
const PROCESS_MS = 1_000;
const INCOMING_SWEEP_MS = 5_000;
const RESPONSE_SWEEP_MS = 10_000;

/** The SDK waits random() * SYNC_MS * multiplier before the next sync message. */
const SYNC_MULTIPLIER = {
  contentSent: 1,
  contentReceived: 0.5,
  syncReceived: 1,
  syncSent: 2,
};

export class Participant {
  #channel;
  #channelId;
  #clock;
  #name;
  #network;
  #random;
  #present = false;
  #processing = false;
  #retries = new Map();
  #nextSync;

  /**
   * @param {object} place
   * @param {string} place.channelId
   * @param {string} place.name also the SDS sender id
   * @param {import("@waku/sds").MessageChannelOptions} place.options
   * @param {import("./clock.mjs").VirtualClock} place.clock
   * @param {import("./network.mjs").Network} place.network
   * @param {import("./random.mjs").RandomStream} place.random for the sync timer
   */
  constructor({ channelId, name, options, clock, network, random }) {
    this.#channel = new MessageChannel(channelId, name, options);
    this.#channelId = channelId;
    this.#clock = clock;
    this.#name = name;
    this.#network = network;
    this.#random = random;
    this.#listen();
  }

  /** @returns {boolean} whether it has entered and has not left */
  get present() {
    return this.#present;
  }

  /** @returns {string[]} message ids in the order of its local history */
  get log() {
    return this.#channel.localHistory.slice(0).map(({ messageId }) => messageId);
  }

  /**
   * @param {string} event name of an event of the library
   * @param {(detail: any) => void} action
   */
  on(event, action) {
    this.#channel.addEventListener(event, ({ detail }) => action(detail));
  }

  /** Starts the timers. */
  enter() {
    this.#present = true;
    this.#every(INCOMING_SWEEP_MS, () => this.#channel.sweepIncomingBuffer());
    this.#every(RESPONSE_SWEEP_MS, () => this.#respond());
    this.#planSync(SYNC_MULTIPLIER.contentSent);
  }

  /** Leaves for good, like an application that is closed: all timers stop. */
  leave() {
    this.#present = false;
  }

  /** Sends a content message; repeats it until it is acknowledged. */
  async say(text) {
    const payload = Buffer.from(text);
    await this.#send(payload, "content");
    this.#planRetry(payload, 1);
  }

  /** Sends a message without Lamport timestamp, history or filter. */
  async sayEphemeral(text) {
    await this.#channel.pushOutgoingEphemeralMessage(
      Buffer.from(text),
      async (message) => {
        this.#broadcast(message, "ephemeral");
        return true;
      },
    );
    await this.#channel.processTasks();
  }

  /** @param {import("./network.mjs").Broadcast} broadcast one that reached it */
  receive(broadcast) {
    if (!this.#present) return;
    // A new object for each receiver, because the library modifies the message.
    const message = Message.decode(broadcast.payload);
    this.#channel.pushIncomingMessage(message, broadcast.hash);
    this.#processSoon();
  }

  #listen() {
    const on = (event, action) => this.on(event, action);
    const syncAfter = (multiplier) => () => this.#planSync(multiplier);
    const { contentSent, contentReceived, syncReceived } = SYNC_MULTIPLIER;
    on(MessageChannelEvent.OutMessageSent, syncAfter(contentSent));
    on(MessageChannelEvent.InMessageReceived, syncAfter(contentReceived));
    on(MessageChannelEvent.InSyncReceived, syncAfter(syncReceived));
    on(MessageChannelEvent.OutMessageAcknowledged, (id) => this.#stopRetries(id));
    on(MessageChannelEvent.ErrorTask, ({ error }) => {
      throw error;
    });
  }

  async #send(payload, cause) {
    this.#channel.pushOutgoingMessage(payload, async (message) => {
      const { hash } = this.#broadcast(message, cause);
      // Always a success, as in the SDK, even if no peer got it: the retry covers that.
      return { success: true, retrievalHint: hash };
    });
    await this.#channel.processTasks();
  }

  async #sync() {
    await this.#channel.pushOutgoingSyncMessage(async (message) => {
      this.#broadcast(message, "sync");
      return true;
    });
    this.#planSync(SYNC_MULTIPLIER.syncSent);
  }

  async #respond() {
    await this.#channel.sweepRepairIncomingBuffer(async (message) => {
      this.#broadcast(message, "repair");
      return true;
    });
  }

  #broadcast(message, cause) {
    return this.#network.broadcast(this.#channelId, this.#name, cause, message);
  }

  #processSoon() {
    if (this.#processing) return;
    this.#processing = true;
    this.#whilePresent(PROCESS_MS, async () => {
      this.#processing = false;
      await this.#channel.processTasks();
    });
  }

  #planSync(multiplier) {
    if (this.#nextSync) this.#nextSync.cancelled = true;
    const delayMs = this.#random.next() * SYNC_MS * multiplier;
    this.#nextSync = this.#whilePresent(delayMs, () => this.#sync());
  }

  #planRetry(payload, attempt) {
    if (attempt > MAX_RETRIES) return;
    const retry = this.#whilePresent(RETRY_MS, async () => {
      await this.#send(payload, "retry");
      this.#planRetry(payload, attempt + 1);
    });
    const id = MessageChannel.getMessageId(payload);
    this.#stopRetries(id);
    this.#retries.set(id, retry);
  }

  #stopRetries(messageId) {
    const retry = this.#retries.get(messageId);
    if (retry) retry.cancelled = true;
    this.#retries.delete(messageId);
  }

  #every(intervalMs, action) {
    this.#whilePresent(intervalMs, async () => {
      await action();
      this.#every(intervalMs, action);
    });
  }

  #whilePresent(delayMs, action) {
    return this.#clock.after(delayMs, async () => {
      if (this.#present) await action();
    });
  }
}
