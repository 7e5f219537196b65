/** Writes the recording and its truth: `npm run record`. */

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { compressed } from "./recording.mjs";
import { SEED } from "./scenario.mjs";
import { simulate } from "./simulation.mjs";
import { truthOf } from "./truth/truth.mjs";

const beside = (name) => fileURLToPath(new URL(`../../connectors/recording/${name}`, import.meta.url));

const { tap, network } = await simulate();
writeFileSync(beside("recorded.jsonl.xz"), compressed(tap.records));
const truth = truthOf(tap, SEED);
writeFileSync(beside("recorded.truth.json"), `${JSON.stringify(truth, null, 1)}\n`);

const { totals } = truth;
console.log(
  `${network.log.length} broadcasts, ${tap.records.length} records, ` +
    `${totals.messages} messages, ${totals.gaps.opened} gaps`,
);
