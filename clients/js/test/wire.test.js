// @ts-check
/** The client wire's bytes, from the file that the gateways' own tests read. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";

import { CODES, findCode, wire } from "../linkstead.js";

const lines = readFileSync(new URL("../../../wire/src/vectors.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line && !line.startsWith("#"))
  .map((line) => line.split(" = "));

const empty = new Uint8Array(1);
const text = (/** @type {string} */ word) => new TextEncoder().encode(word === "-" ? "" : word);

/** What a line asks for, as the client writes it; null for what only a gateway writes. @param {string[]} what */
function written([kind, ...values]) {
  const out = new wire.Writer();
  if (kind === "long") out.long(BigInt(values[0]));
  else if (kind === "uint") out.uint(Number(values[0]));
  else if (kind === "auth") {
    return wire.encodeFrame(wire.AUTH, wire.REQUEST, 1n, wire.encodeTagged(values.map(text)));
  } else if (kind === "keep_alive") {
    return wire.encodeFrame(wire.KEEP_ALIVE, wire.REQUEST, BigInt(values[0]), empty);
  } else if (kind === "keep_alive_answer") {
    return wire.encodeFrame(wire.KEEP_ALIVE, wire.RESPONSE, BigInt(values[0]), empty);
  } else if (kind === "refusal") {
    const [module, protocol] = values.map(Number);
    const [session, result] = values.slice(2).map(BigInt);
    return wire.encodeFrame({ module, protocol }, wire.RESPONSE, session, empty, result);
  } else return null;
  return out.finish();
}

for (const [what, hex] of lines) {
  it(`${what} is these bytes`, () => {
    const [kind, ...values] = what.split(" ");
    const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
    const ours = written([kind, ...values]);
    if (ours) assert.equal(Buffer.from(ours).toString("hex"), hex);
    if (kind === "long") assert.equal(new wire.Reader(bytes).long(), BigInt(values[0]));
    else if (kind === "uint") assert.equal(new wire.Reader(bytes).uint(), Number(values[0]));
    else {
      const inbox = new wire.Inbox();
      inbox.push(bytes);
      const frame = inbox.next();
      assert.ok(frame && inbox.next() === null);
      const { body } = wire.decodePayload(frame.payload);
      if (kind === "report") {
        const { from, code, text } = wire.decodeReport(body);
        assert.deepEqual([from, code, text], [Number(values[0]), Number(values[1]), values.slice(2).join(" ")]);
      }
    }
  });
}

it("numbers that end too early are refused, wherever they are cut", () => {
  for (const [what, hex] of lines.filter(([what]) => /^(long|uint)/.test(what))) {
    const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
    for (let cut = 0; cut < bytes.length; cut++) {
      const reader = new wire.Reader(bytes.subarray(0, cut));
      assert.throws(() => (what.startsWith("long") ? reader.long() : reader.uint()), wire.BadBytes, what);
    }
  }
});

// Holds: C-08.
it("numbers of 64 bits stay what they are, also where a float would round them", () => {
  for (const number of [0n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 63n + 1n, 2n ** 64n - 1n]) {
    const out = new wire.Writer();
    out.varint64(number);
    out.long(BigInt.asIntN(64, number));
    const reader = new wire.Reader(out.finish());
    assert.deepEqual([reader.varint64(), reader.long()], [number, BigInt.asIntN(64, number)]);
    assert.equal(BigInt(JSON.parse(JSON.stringify(String(number)))), number);
  }
});

it("tagged fields that the client doesn't know are passed over", () => {
  // 1: list of two integers, 2: map<int,bytes> of one, 3: bean {1: 7}, 4: float, then 5: integer 9.
  const bean = [0x14, 0x20, 1, 2, 0x15, 0x03, 1, 5, 1, 0x61, 0x16, 0x10, 7, 0, 0x11, 0, 0, 0, 0, 0x10, 9, 0];
  assert.deepEqual(wire.decodeTagged(new Uint8Array(bean)), new Map([[5, 9n]]));
});

// Holds: Q71.
it("deep and huge claims are refused before anything is made of them", () => {
  const refused = (/** @type {Uint8Array} */ bytes) => assert.throws(() => wire.decodeTagged(bytes), wire.BadBytes);
  refused(new Uint8Array(10_000).fill(0x16));
  refused(new Uint8Array([0x14, 0xf0, 0xf0, 0x7f, 0xff, 0xff, 0xff]));
  refused(new Uint8Array([0x13, 0xf0, 0xff, 0xff, 0xff, 0xff]));
  refused(new Uint8Array([0x1d]));
});

it("each code is found by its number and by what refuses with it", () => {
  for (const row of CODES) {
    assert.equal(findCode(row.number), row);
    const error = wire.refusal(BigInt(row.result));
    assert.deepEqual([error.code, error.codeName, error.retry], [row.number, row.name, row.retry]);
  }
  assert.deepEqual(wire.refusal((7n << 32n) | 0xffff_ffffn).game, { module: 7, code: -1 });
  assert.equal(wire.refusal(-(2n ** 63n)).code, 0);
});
