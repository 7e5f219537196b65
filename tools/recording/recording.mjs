/** The file format of the recording: xz of JSON Lines, one record per line. */

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Maximum size of the output of `xz`. */
const MAX_BYTES = 256 * 2 ** 20;

/**
 * @param {import("./tap.mjs").Record[]} records
 * @returns {string} one line per record
 */
export function jsonLines(records) {
  return records.map((record) => `${jsonLine(record)}\n`).join("");
}

/** @returns {Buffer} the records as a compressed file */
export function compressed(records) {
  return xz(["-9e", "--stdout"], jsonLines(records));
}

/** @returns {Buffer} the lines of a compressed file */
export function readCompressed(path) {
  return xz(["--decompress", "--stdout"], readFileSync(path));
}

function jsonLine({ partition, timestampMs, key, value, headers }) {
  return JSON.stringify({
    partition,
    timestamp_ms: timestampMs,
    key,
    // Hex digits, unlike base64, let xz find the repeated bytes of successive filters.
    value_hex: Buffer.from(value).toString("hex"),
    headers,
  });
}

function xz(args, input) {
  const result = spawnSync("xz", args, { input, maxBuffer: MAX_BYTES });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`xz failed: ${result.stderr}`);
  return result.stdout;
}
