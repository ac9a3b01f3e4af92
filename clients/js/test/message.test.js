// @ts-check
/** Messages: the providers' bytes both ways, and bytes that no provider writes. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { decodeMessage, encodeMessage } from "../linkstead.js";
import { Mirror, enums, messages } from "./everything.js";

const { Everything } = messages;

/** @type {Record<string, import("../linkstead.js").Input<import("./everything.js").Everything>>} */
const VALUES = {
  empty: {},
  low: {
    ...{ int32: -(2 ** 31), int64: -(2n ** 63n), sint32: -(2 ** 31), sint64: -(2n ** 63n), sfixed32: -(2 ** 31) },
    ...{ sfixed64: -(2n ** 63n), float: -Infinity, double: -1.5, color: enums.Color.ODD },
  },
  high: {
    ...{ int32: 2 ** 31 - 1, int64: 2n ** 63n - 1n, uint32: 2 ** 32 - 1, uint64: 2n ** 64n - 1n, sint32: 2 ** 31 - 1 },
    ...{ sint64: 2n ** 63n - 1n, fixed32: 2 ** 32 - 1, fixed64: 2n ** 64n - 1n, sfixed32: 2 ** 31 - 1 },
    ...{ sfixed64: 2n ** 63n - 1n, float: 0.5, double: Number.MAX_VALUE, bool: true, string: "héllo, 世界 🍺" },
    ...{ bytes: new Uint8Array([0, 255, 128]), color: enums.Color.BLUE, far: 1 },
  },
  many: {
    inner: { inner: { uint32: 7 } },
    manyStrings: ["a", "", "c"],
    packedNumbers: [0, -1, 1, -(2 ** 31)],
    looseNumbers: [0, 300],
    manyInner: [{}, { uint32: 1 }],
    counts: new Map([["", 5n], ["a", 0n], ["b", -2n]]),
    byNumber: /** @type {any} */ (new Map([[-1, { uint32: 3 }], [0, { uint32: 4 }]])),
    maybe: 0,
    left: "",
  },
  right: { right: { uint32: 9 } },
};

const golden = readFileSync(new URL("everything.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line && !line.startsWith("#"))
  .map((line) => line.split(" "));

/** With its defaults, as decoded: nested ones too. @param {any} value @returns {any} */
function whole(value) {
  const made = { ...decodeMessage(Everything, new Uint8Array(0)), ...value };
  for (const key of ["inner", "right"]) if (made[key]) made[key] = whole(made[key]);
  made.manyInner = made.manyInner.map(whole);
  made.byNumber = new Map([...made.byNumber].map(([key, one]) => [key, whole(one)]));
  return made;
}

/** @param {string} text @returns {Uint8Array} */
const hex = (text) => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));

describe("messages are the providers' bytes", () => {
  assert.deepEqual(golden.map(([name]) => name), Object.keys(VALUES));
  for (const [name, bytes = ""] of golden) {
    it(`of ${name}, both ways`, () => {
      assert.equal(Buffer.from(encodeMessage(Everything, VALUES[name])).toString("hex"), bytes);
      assert.deepEqual(decodeMessage(Everything, hex(bytes)), whole(VALUES[name]));
    });
  }

  it("cut anywhere, they are whole or refused, and never anything else", () => {
    for (const [, bytes = ""] of golden) {
      const all = hex(bytes);
      for (let cut = 0; cut < all.length; cut++) {
        try {
          decodeMessage(Everything, all.subarray(0, cut));
        } catch (error) {
          assert.equal(/** @type {any} */ (error).kind, "bad_reply", String(error));
        }
      }
    }
  });
});

describe("what comes from elsewhere", () => {
  it("is read as protobuf says", () => {
    const read = (/** @type {string} */ text) => decodeMessage(Everything, hex(text));
    assert.equal(read("18 01 18 02").uint32, 2, "the last one counts");
    assert.deepEqual(read("8a 01 02 18 01 8a 01 02 20 02").inner, whole({ uint32: 1, uint64: 2n }), "one message in two parts");
    assert.deepEqual(read("98 01 01 98 01 02").packedNumbers, [-1, 1], "not packed");
    assert.deepEqual(read("a2 01 02 01 02").looseNumbers, [1, 2], "packed");
    const both = read("ca 01 01 61 d2 01 00");
    assert.deepEqual([both.left, both.right], [undefined, whole({})], "the last of a choice counts");
    assert.deepEqual(read("ba 01 00").byNumber, new Map([[0, whole({})]]), "an entry without key and value");
    assert.equal(read("08 ff ff ff ff 0f").int32, -1, "a short negative number");
    assert.equal(read("68 80 80 80 80 10").bool, true);
  });

  it("with unknown fields is passed over", () => {
    const unknown = "c8 3e 01 c9 3e 0000000000000000 ca 3e 02 ffff cd 3e 00000000 cb 3e 08 01 cb 3e cc 3e cc 3e 18 05";
    assert.deepEqual(decodeMessage(Everything, hex(unknown)), whole({ uint32: 5 }));
  });

  // Holds: Q71.
  it("and is no message is refused", () => {
    for (const [text, words] of /** @type {[string, RegExp][]} */ ([
      ["18", /too early/],
      ["18 ff ff ff ff ff ff ff ff ff ff 01", /64 bits/],
      ["18 ff ff ff ff ff ff ff ff ff 02", /64 bits/],
      ["00 00", /impossible number/],
      ["1a 00", /wire type 2, not 0/],
      ["72 02 c3 28", /not UTF-8/],
      ["72 ff ff ff ff 0f 61", /too early/],
      ["72 ff ff ff ff ff ff ff ff ff 01", /too early/],
      ["cb 3e 18 01", /too early/],
      ["cc 3e", /impossible wire type 4/],
      ["cf 3e", /impossible wire type 7/],
    ])) {
      assert.throws(() => decodeMessage(Everything, hex(text)), (/** @type {any} */ error) => error.kind === "bad_reply" && words.test(error.message), text);
    }
  });

  // Holds: Q71.
  it("and is nested without end is refused", () => {
    const deep = (/** @type {number} */ depth) => {
      let bytes = [0x18, 1];
      for (let i = 0; i < depth; i++) {
        const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7];
        bytes = [0x8a, 0x01, ...length, ...bytes];
      }
      return new Uint8Array(bytes);
    };
    assert.ok(decodeMessage(Everything, deep(100)));
    assert.throws(() => decodeMessage(Everything, deep(101)), /nested more than 100/);
    const groups = new Uint8Array(20_000).fill(0xcb).map((byte, at) => (at % 2 ? 0x3e : byte));
    assert.throws(() => decodeMessage(Everything, groups), /nested more than 100/);
    /** @type {any} */
    const circle = {};
    circle.inner = circle;
    assert.throws(() => encodeMessage(Everything, circle), /nested more than 100/);
  });

  // Holds: Q71.
  it("keeps its bytes when the buffer they came in is used again", () => {
    const buffer = hex("7a 02 01 02");
    const { bytes } = decodeMessage(Everything, buffer);
    buffer.fill(9);
    assert.deepEqual(bytes, new Uint8Array([1, 2]));
  });

  it("is never taken for more than it is, whatever the bytes", () => {
    let state = 1;
    const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 8;
    for (let round = 0; round < 20_000; round++) {
      const bytes = Uint8Array.from({ length: random() % 40 }, () => random() & 0xff);
      try {
        decodeMessage(Everything, bytes);
      } catch (error) {
        assert.equal(/** @type {any} */ (error).kind, "bad_reply", `round ${round}: ${error}`);
      }
    }
  });
});

it("a message that can't be sent is refused by the field's name", () => {
  for (const [message, words] of /** @type {[any, RegExp][]} */ ([
    [{ int32: 2 ** 31 }, /Everything\.int32 must be between -2147483648 and 2147483647/],
    [{ uint32: -1 }, /uint32 must be between 0/],
    [{ int32: 1.5 }, /int32 must be a whole number/],
    [{ int64: 5 }, /int64 must be a BigInt/],
    [{ uint64: 2n ** 64n }, /uint64 must be between/],
    [{ bool: 1 }, /bool must be true or false/],
    [{ double: "1" }, /double must be a number/],
    [{ string: "\ud800" }, /half of a character/],
    [{ bytes: [1] }, /bytes must be a Uint8Array/],
    [{ inner: { inner: { strng: 1 } } }, /Everything\.inner\.inner has no field strng/],
    [{ manyStrings: "a" }, /manyStrings must be an array/],
    [{ manyStrings: ["a", 1] }, /manyStrings must be a string/],
    [{ counts: {} }, /counts must be a Map/],
    [{ left: "a", right: {} }, /has both left and right/],
    [null, /must be an object/],
  ])) {
    assert.throws(() => encodeMessage(Everything, message), (/** @type {any} */ error) => error.kind === "bad_message" && words.test(error.message), String(words));
  }
  assert.equal(Mirror.wave.notify, Everything);
});
