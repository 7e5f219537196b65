/** Runs the scenario and returns what the tap wrote and what was sent. */

import { VirtualClock, installVirtualTime } from "./clock.mjs";
import { Network } from "./network.mjs";
import { Participant } from "./participant.mjs";
import { randomStream } from "./random.mjs";
import * as scenario from "./scenario.mjs";
import { Tap } from "./tap.mjs";

const BETWEEN_LINES_MS = 50;
const ENTRY_MS = 3_000;
const WORDS = [
  ..."anchor bridge candle ferry garden harbour island kettle lantern".split(" "),
  ..."meadow north orchard paper quarry river signal tower valley winter".split(" "),
];

/** @returns {number} a scenario time as Unix time, ms */
const unixMs = (seconds) => scenario.START_MS + Math.round(seconds * 1_000);

/** @returns {Promise<{tap: Tap, network: Network}>} their state after the scenario */
export async function simulate() {
  const clock = new VirtualClock(scenario.START_MS);
  const restore = installVirtualTime(clock, stream("library"));
  try {
    const network = new Network(clock, stream("network"), cuts());
    const tap = addTap(clock, network);
    for (const plan of scenario.CHANNELS) openChannel(plan, clock, network);
    await clock.runUntil(unixMs(scenario.END));
    return { tap, network };
  } finally {
    restore();
  }
}

function stream(purpose) {
  return randomStream(scenario.SEED, purpose);
}

function cuts() {
  return scenario.CHANNELS.flatMap((plan) =>
    plan.outages.map(({ nodes, direction, from, to }) => ({
      channelId: plan.id,
      nodes,
      direction,
      fromMs: unixMs(from),
      toMs: unixMs(to),
    })),
  );
}

function addTap(clock, network) {
  const tap = new Tap({
    observer: scenario.OBSERVER,
    partitions: scenario.PARTITIONS,
    replicaRate: scenario.REPLICA_RATE,
    clock,
    random: stream("tap"),
  });
  for (const plan of scenario.CHANNELS) {
    network.join(plan.id, {
      name: scenario.TAP,
      loss: plan.tapLoss,
      delayMs: scenario.TAP_DELAY_MS,
      receive: (broadcast) => tap.receive(broadcast, plan.partition),
    });
  }
  clock.at(unixMs(scenario.TAP_START), () => tap.start());
  return tap;
}

function openChannel(plan, clock, network) {
  const people = new Map(
    plan.participants.map((name) => [name, admit(name, plan, clock, network)]),
  );
  planEntries(plan, people, clock);
  planTalk(plan, people, clock);
  planLines(plan, people, clock);
  for (const { who, at } of plan.departures) {
    clock.at(unixMs(at), () => people.get(who).leave());
  }
}

function admit(name, plan, clock, network) {
  const person = new Participant({
    channelId: plan.id,
    name,
    options: plan.options,
    clock,
    network,
    random: stream(`${plan.id} ${name}`),
  });
  network.join(plan.id, {
    name,
    loss: plan.loss,
    delayMs: scenario.PARTICIPANT_DELAY_MS,
    receive: (broadcast) => person.receive(broadcast),
  });
  return person;
}

function planEntries(plan, people, clock) {
  const random = stream(`${plan.id} entries`);
  for (const person of people.values()) {
    // Apart, because responses sent in the same ms would have the same Waku hash.
    clock.after(random.integer(0, ENTRY_MS), () => person.enter());
  }
}

function planTalk(plan, people, clock) {
  const random = stream(`${plan.id} talk`);
  for (const spell of plan.talk) {
    let atMs = unixMs(spell.from);
    while (atMs < unixMs(spell.to)) {
      const person = people.get(random.pick(plan.participants));
      const text = randomText(random);
      clock.at(atMs, () => sayIfPresent(person, text));
      atMs += 1 + random.exponential(spell.every * 1_000);
    }
  }
}

function planLines(plan, people, clock) {
  const random = stream(`${plan.id} lines`);
  for (const { at, who, text, times = 1, ephemeral = false } of plan.lines) {
    const person = people.get(who);
    for (let count = 0; count < times; count += 1) {
      const words = text ?? randomText(random);
      clock.at(unixMs(at) + count * BETWEEN_LINES_MS, () =>
        ephemeral ? person.sayEphemeral(words) : sayIfPresent(person, words),
      );
    }
  }
}

async function sayIfPresent(person, text) {
  if (person.present) await person.say(text);
}

function randomText(random) {
  const length = random.integer(3, 18);
  const words = Array.from({ length }, () => random.pick(WORDS));
  // The number makes each text distinct: the library hashes the text to the id.
  return `${words.join(" ")} ${random.integer(0, 1e9)}`;
}
