/** `npm test`: the files are up to date and contain every case they are made for. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { jsonLines, readCompressed } from "./recording.mjs";
import { SEED } from "./scenario.mjs";
import { simulate } from "./simulation.mjs";
import { truthOf } from "./truth/truth.mjs";

const beside = (name) => new URL(`../../connectors/recording/${name}`, import.meta.url);
const { tap, network } = await simulate();
const truth = truthOf(tap, SEED);
const reports = [...Object.values(truth.channels), truth.totals];

test("the recording equals the simulation's records", () => {
  const recorded = readCompressed(beside("recorded.jsonl.xz"));
  assert.ok(recorded.equals(Buffer.from(jsonLines(tap.records))));
});

test("the truth equals that of the simulation", () => {
  assert.deepEqual(JSON.parse(readFileSync(beside("recorded.truth.json"))), truth);
});

test("a second simulation gives the same records", async () => {
  const again = await simulate();
  assert.equal(jsonLines(again.tap.records), jsonLines(tap.records));
});

test("every message has exactly one fate", () => {
  for (const report of reports) {
    const fates =
      report.acknowledged_in_time +
      report.unacknowledged +
      report.unwitnessed +
      report.in_flight;
    assert.equal(fates, report.messages);
  }
});

test("every gap has exactly one outcome", () => {
  for (const { gaps } of reports) {
    const { opened, retracted: _, ...outcomes } = gaps;
    assert.equal(add(outcomes), opened);
  }
});

test("every response answers or is redundant", () => {
  for (const { repair } of reports) {
    assert.equal(repair.answered + repair.redundant, repair.responses);
  }
});

test("content frames are messages, rebroadcasts and collisions", () => {
  for (const report of reports) {
    const copies = add(report.rebroadcasts) + report.message_id_collisions;
    assert.equal(report.messages + copies, report.frames.content);
  }
});

test("every count of the report is positive in total", () => {
  const { sender_side: _, ...counts } = truth.totals;
  assertPositive(counts);
});

test("the tap misses some broadcasts and numbers the others without holes", () => {
  const frames = tap.records.filter(({ key }) => key !== null);
  const seqs = frames.map(({ headers }) => Number(new Map(headers).get("seq")));
  assert.deepEqual(seqs, Array.from(frames, (_, position) => position + 1));
  const written = new Set(tap.sightings.map(({ broadcast }) => broadcast));
  assert.ok(written.size < network.log.length);
});

test("records are in order of time", () => {
  const times = tap.records.map(({ timestampMs }) => timestampMs);
  assert.deepEqual(times, times.toSorted((one, other) => one - other));
});

function add(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function assertPositive(counts) {
  for (const [name, count] of Object.entries(counts)) {
    if (typeof count === "object") assertPositive(count);
    else assert.ok(count > 0, name);
  }
}
