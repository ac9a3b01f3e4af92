// @ts-check
// Written by the game's own binary, `types js`, from its modules and its .proto files. Change those, not this.

/** @template T @typedef {import("./linkstead.js").MessageType<T>} MessageType */
/** @template Q, A @typedef {import("./linkstead.js").Rpc<Q, A>} Rpc */
/** @template Q @typedef {import("./linkstead.js").Notify<Q>} Notify */
/** @template T @typedef {import("./linkstead.js").Push<T>} Push */

/**
 * Speak to everybody in the cluster. The keeper's right.
 * @typedef {object} Announce
 * @property {string} text
 */

/**
 * Pushed to everybody.
 * @typedef {object} Announced
 * @property {string} text
 */

/**
 * @typedef {object} Enter
 * @property {string} room
 */

/**
 * @typedef {object} Entered
 * @property {string[]} members Everybody in the room, yourself included, by name.
 */

/**
 * @typedef {object} Heard
 * @property {number} by How many it was sent to, yourself included.
 */

/**
 * Pushed to those who were in the room before.
 * @typedef {object} Joined
 * @property {string} room
 * @property {string} account
 */

/**
 * Show a guest out. The keeper's right.
 * @typedef {object} Kick
 * @property {string} account
 */

/**
 * @typedef {object} Leave
 * @property {string} room
 */

/**
 * Pushed to those who stay.
 * @typedef {object} Left
 * @property {string} room
 * @property {string} account
 */

/**
 * Come in. The account is the one that the gateway has authenticated.
 * @typedef {object} Login
 */

/**
 * @typedef {object} Members
 * @property {string[]} members
 */

/**
 * Pushed to the room, the speaker included: everybody in it hears the same words in the same order.
 * @typedef {object} Said
 * @property {string} room
 * @property {string} from
 * @property {string} text
 */

/**
 * @typedef {object} Say
 * @property {string} room
 * @property {string} text
 */

/**
 * @typedef {object} Welcome
 * @property {string} account
 * @property {string[]} online Other guests at the same provider, at most 50, by name.
 * @property {number} guests All guests at the same provider, yourself included.
 */

/**
 * @typedef {object} Whisper
 * @property {string} to
 * @property {string} text
 */

/**
 * Pushed to the one it was for.
 * @typedef {object} Whispered
 * @property {string} from
 * @property {string} text
 */

/**
 * @typedef {object} Who
 * @property {string} room
 */

/**
 * The shapes of the messages.
 * @type {Readonly<{
 *   Announce: MessageType<Announce>,
 *   Announced: MessageType<Announced>,
 *   Enter: MessageType<Enter>,
 *   Entered: MessageType<Entered>,
 *   Heard: MessageType<Heard>,
 *   Joined: MessageType<Joined>,
 *   Kick: MessageType<Kick>,
 *   Leave: MessageType<Leave>,
 *   Left: MessageType<Left>,
 *   Login: MessageType<Login>,
 *   Members: MessageType<Members>,
 *   Said: MessageType<Said>,
 *   Say: MessageType<Say>,
 *   Welcome: MessageType<Welcome>,
 *   Whisper: MessageType<Whisper>,
 *   Whispered: MessageType<Whispered>,
 *   Who: MessageType<Who>,
 * }>}
 */
export const messages = Object.freeze({
  Announce: { name: "tavern.Announce", fields: [
    { tag: 1, name: "text", kind: "string" },
  ] },
  Announced: { name: "tavern.Announced", fields: [
    { tag: 1, name: "text", kind: "string" },
  ] },
  Enter: { name: "tavern.Enter", fields: [
    { tag: 1, name: "room", kind: "string" },
  ] },
  Entered: { name: "tavern.Entered", fields: [
    { tag: 1, name: "members", kind: "string", repeated: true },
  ] },
  Heard: { name: "tavern.Heard", fields: [
    { tag: 1, name: "by", kind: "uint32" },
  ] },
  Joined: { name: "tavern.Joined", fields: [
    { tag: 1, name: "room", kind: "string" },
    { tag: 2, name: "account", kind: "string" },
  ] },
  Kick: { name: "tavern.Kick", fields: [
    { tag: 1, name: "account", kind: "string" },
  ] },
  Leave: { name: "tavern.Leave", fields: [
    { tag: 1, name: "room", kind: "string" },
  ] },
  Left: { name: "tavern.Left", fields: [
    { tag: 1, name: "room", kind: "string" },
    { tag: 2, name: "account", kind: "string" },
  ] },
  Login: { name: "tavern.Login", fields: [] },
  Members: { name: "tavern.Members", fields: [
    { tag: 1, name: "members", kind: "string", repeated: true },
  ] },
  Said: { name: "tavern.Said", fields: [
    { tag: 1, name: "room", kind: "string" },
    { tag: 2, name: "from", kind: "string" },
    { tag: 3, name: "text", kind: "string" },
  ] },
  Say: { name: "tavern.Say", fields: [
    { tag: 1, name: "room", kind: "string" },
    { tag: 2, name: "text", kind: "string" },
  ] },
  Welcome: { name: "tavern.Welcome", fields: [
    { tag: 1, name: "account", kind: "string" },
    { tag: 2, name: "online", kind: "string", repeated: true },
    { tag: 3, name: "guests", kind: "uint32" },
  ] },
  Whisper: { name: "tavern.Whisper", fields: [
    { tag: 1, name: "to", kind: "string" },
    { tag: 2, name: "text", kind: "string" },
  ] },
  Whispered: { name: "tavern.Whispered", fields: [
    { tag: 1, name: "from", kind: "string" },
    { tag: 2, name: "text", kind: "string" },
  ] },
  Who: { name: "tavern.Who", fields: [
    { tag: 1, name: "room", kind: "string" },
  ] },
});

/** Which modules there are, and how a gateway picks a provider for them. */
export const modules = Object.freeze([
  { id: 1, name: "Tavern", choice: "hash_account", dynamic: false },
  { id: 2, name: "Rooms", choice: "hash_account", dynamic: true },
  { id: 3, name: "Guests", choice: "hash_account", dynamic: true },
]);

/** The protocols of module `Tavern`. */
export const Tavern = Object.freeze({
  /** @type {Rpc<Login, Welcome>} */
  login: { name: "Tavern.login", module: 1, protocol: 274666913, request: messages.Login, reply: messages.Welcome },
  /** @type {Rpc<Announce, void>} */
  announce: { name: "Tavern.announce", module: 1, protocol: 480606235, request: messages.Announce, reply: null },
  /** @type {Push<Announced>} */
  Announced: { name: "Tavern.Announced", module: 1, protocol: -1928286359, push: messages.Announced },
});

/** The protocols of module `Rooms`. */
export const Rooms = Object.freeze({
  /** @type {Rpc<Enter, Entered>} */
  enter: { name: "Rooms.enter", module: 2, protocol: 792972173, request: messages.Enter, reply: messages.Entered },
  /** @type {Rpc<Leave, void>} */
  leave: { name: "Rooms.leave", module: 2, protocol: -1590390716, request: messages.Leave, reply: null },
  /** @type {Rpc<Say, Heard>} */
  say: { name: "Rooms.say", module: 2, protocol: -1890124873, request: messages.Say, reply: messages.Heard },
  /** @type {Rpc<Who, Members>} */
  who: { name: "Rooms.who", module: 2, protocol: -1047742597, request: messages.Who, reply: messages.Members },
  /** @type {Push<Said>} */
  Said: { name: "Rooms.Said", module: 2, protocol: -646988871, push: messages.Said },
  /** @type {Push<Joined>} */
  Joined: { name: "Rooms.Joined", module: 2, protocol: -1445262467, push: messages.Joined },
  /** @type {Push<Left>} */
  Left: { name: "Rooms.Left", module: 2, protocol: 1894180024, push: messages.Left },
});

/** The protocols of module `Guests`. */
export const Guests = Object.freeze({
  /** @type {Rpc<Whisper, void>} */
  whisper: { name: "Guests.whisper", module: 3, protocol: -985273670, request: messages.Whisper, reply: null },
  /** @type {Rpc<Kick, void>} */
  kick: { name: "Guests.kick", module: 3, protocol: 981924451, request: messages.Kick, reply: null },
  /** @type {Push<Whispered>} */
  Whispered: { name: "Guests.Whispered", module: 3, protocol: 3698805, push: messages.Whispered },
});
