// @ts-check
/**
 * Breaks the client on purpose, one break at a time, and demands that its tests notice: `npm run planted`, or with the
 * name of one. The break is made in a copy; the client itself holds nothing of it.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Name, what is right, what it becomes. Each piece of text stands exactly once in the client. */
const FAULTS = [
  ["answers_by_number_only", "if (!waiting || !same(waiting.type, type)) return", "if (!waiting) return"],
  ["requests_outlive_their_connection", "reject(new LinksteadError(\"lost\", `${LOST}", "void (new LinksteadError(\"lost\", `${LOST}"],
  ["in_flight_unbounded", "if (this.waiting.size >= this.settings.inFlightMax)", "if (false)"],
  ["sent_into_a_closing_socket", "if (this.over || this.socket.readyState !== 1) throw", "if (this.over) throw"],
  ["one_token_for_ever", "const given = await Promise.race([token(), late, this.#closed]);", "const given = await (this.kept ??= token());"],
  ["a_kicked_player_comes_back", "row?.retry ?? \"never\"", "\"now\""],
  ["a_dropped_connection_is_a_loop", "openMs !== null && openMs >= stableMs", "openMs !== null"],
  ["dials_without_a_network", "while (globalThis.navigator?.onLine === false", "while (false"],
  ["silence_is_not_noticed", "if (this.asked) {", "if (false) {"],
  ["bad_bytes_escape", "    try {\n      work();\n    } catch (error) {", "    work();\n    try {\n    } catch (/** @type {any} */ error) {"],
  ["a_size_is_not_judged", "if (size > PAYLOAD_BYTES_CEILING) {", "if (false) {"],
  ["bytes_are_not_copied", "return reader.take(reader.length()).slice();", "return reader.take(reader.length());"],
  ["depth_unbounded", "if (depth > MESSAGE_DEPTH_MAX) throw new BadBytes(`messages", "if (false) throw new BadBytes(`messages"],
  ["half_characters_are_sent", "if (/\\p{Surrogate}/u.test(value))", "if (false)"],
];

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const client = readFileSync(join(here, "linkstead.js"), "utf8");

/** The copy, laid out as the repository. */
const copy = mkdtempSync(join(tmpdir(), "linkstead-planted-"));
for (const path of ["clients/js/test", "clients/js/package.json", "examples/tavern/web/tavern.js", "wire/src/vectors.txt"]) {
  mkdirSync(dirname(join(copy, path)), { recursive: true });
  cpSync(join(root, path), join(copy, path), { recursive: true });
}

/** @param {string} text the client's @returns {boolean} whether its tests pass */
function passes(text) {
  const folder = join(copy, "clients/js");
  writeFileSync(join(folder, "linkstead.js"), text);
  // A test that hangs has noticed the fault too.
  const args = ["--test", "--test-timeout=4000", "test/"];
  return spawnSync(process.execPath, args, { cwd: folder, timeout: 12_000 }).status === 0;
}

let missed = 0;
const verdict = (/** @type {string} */ name, /** @type {boolean} */ good, /** @type {string} */ words) => {
  if (!good) missed++;
  console.log(`${name.padEnd(36)} ${words}`);
};

const chosen = FAULTS.filter(([name]) => process.argv.length < 3 || process.argv.slice(2).includes(name));
if (!passes(client)) verdict("(no fault)", false, "BROKEN: tests fail without a fault");
for (const [name, right, wrong] of chosen) {
  if (client.split(right).length !== 2) verdict(name, false, "GONE: its text does not stand exactly once in linkstead.js");
  else if (passes(client.replace(right, () => wrong))) verdict(name, false, "MISSED: every test passed");
  else verdict(name, true, "caught");
}
rmSync(copy, { recursive: true, force: true });
console.log(`${chosen.length} faults, ${missed} not caught`);
process.exitCode = missed > 0 || chosen.length === 0 ? 1 : 0;
