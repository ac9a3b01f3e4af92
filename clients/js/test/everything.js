// @ts-check
// Written by the game's own binary, `types js`, from its modules and its .proto files. Change those, not this.

/** @template T @typedef {import("../linkstead.js").MessageType<T>} MessageType */
/** @template Q, A @typedef {import("../linkstead.js").Rpc<Q, A>} Rpc */
/** @template Q @typedef {import("../linkstead.js").Notify<Q>} Notify */
/** @template T @typedef {import("../linkstead.js").Push<T>} Push */

/**
 * A field of each kind. A comment may hold *\/ without harm.
 * @typedef {object} Everything
 * @property {number} int32
 * @property {bigint} int64
 * @property {number} uint32
 * @property {bigint} uint64
 * @property {number} sint32
 * @property {bigint} sint64
 * @property {number} fixed32
 * @property {bigint} fixed64
 * @property {number} sfixed32
 * @property {bigint} sfixed64
 * @property {number} float
 * @property {number} double
 * @property {boolean} bool
 * @property {string} string
 * @property {Uint8Array} bytes
 * @property {number} color
 * @property {Everything} [inner]
 * @property {string[]} manyStrings
 * @property {number[]} packedNumbers
 * @property {number[]} looseNumbers
 * @property {Everything[]} manyInner
 * @property {Map<string, bigint>} counts
 * @property {Map<number, Everything>} byNumber
 * @property {number} [maybe]
 * @property {string} [left]
 * @property {Everything} [right]
 * @property {number} far
 */

/** Names of numbers. */
export const enums = Object.freeze({
  Color: Object.freeze({ RED: 0, BLUE: 5, ODD: -1 }),
});

/**
 * The shapes of the messages.
 * @type {Readonly<{
 *   Everything: MessageType<Everything>,
 * }>}
 */
export const messages = Object.freeze({
  Everything: { name: "test.Everything", fields: [
    { tag: 1, name: "int32", kind: "int32" },
    { tag: 2, name: "int64", kind: "int64" },
    { tag: 3, name: "uint32", kind: "uint32" },
    { tag: 4, name: "uint64", kind: "uint64" },
    { tag: 5, name: "sint32", kind: "sint32" },
    { tag: 6, name: "sint64", kind: "sint64" },
    { tag: 7, name: "fixed32", kind: "fixed32" },
    { tag: 8, name: "fixed64", kind: "fixed64" },
    { tag: 9, name: "sfixed32", kind: "sfixed32" },
    { tag: 10, name: "sfixed64", kind: "sfixed64" },
    { tag: 11, name: "float", kind: "float" },
    { tag: 12, name: "double", kind: "double" },
    { tag: 13, name: "bool", kind: "bool" },
    { tag: 14, name: "string", kind: "string" },
    { tag: 15, name: "bytes", kind: "bytes" },
    { tag: 16, name: "color", kind: "enum" },
    { tag: 17, name: "inner", kind: "message", type: () => messages.Everything },
    { tag: 18, name: "manyStrings", kind: "string", repeated: true },
    { tag: 19, name: "packedNumbers", kind: "sint32", repeated: true, packed: true },
    { tag: 20, name: "looseNumbers", kind: "uint32", repeated: true },
    { tag: 21, name: "manyInner", kind: "message", type: () => messages.Everything, repeated: true },
    { tag: 22, name: "counts", kind: "map", entry: [{ tag: 1, name: "key", kind: "string" }, { tag: 2, name: "value", kind: "int64" }] },
    { tag: 23, name: "byNumber", kind: "map", entry: [{ tag: 1, name: "key", kind: "int32" }, { tag: 2, name: "value", kind: "message", type: () => messages.Everything }] },
    { tag: 24, name: "maybe", kind: "uint32", optional: true },
    { tag: 25, name: "left", kind: "string", optional: true, oneof: "choice" },
    { tag: 26, name: "right", kind: "message", type: () => messages.Everything, optional: true, oneof: "choice" },
    { tag: 536870911, name: "far", kind: "uint32" },
  ] },
});

/** Which modules there are, and how a gateway picks a provider for them. */
export const modules = Object.freeze([
  { id: 99, name: "Mirror", choice: "request", dynamic: false },
]);

/** The protocols of module `Mirror`. */
export const Mirror = Object.freeze({
  /** @type {Rpc<Everything, Everything>} */
  look: { name: "Mirror.look", module: 99, protocol: 1847676057, request: messages.Everything, reply: messages.Everything },
  /** @type {Notify<Everything>} */
  wave: { name: "Mirror.wave", module: 99, protocol: -507963009, notify: messages.Everything },
  /** @type {Push<Everything>} */
  Everything: { name: "Mirror.Everything", module: 99, protocol: -1297351758, push: messages.Everything },
});
