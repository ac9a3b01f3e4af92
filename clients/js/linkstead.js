// @ts-check
/**
 * The Linkstead client for browsers, and for Node 20 or later. One file, no dependency, no build step.
 *
 * ```js
 * import { connect } from "./linkstead.js";
 * import { Rooms } from "./tavern.js"; // written by `cargo run -p tavern -- types js`
 *
 * const client = connect({ url: "ws://127.0.0.1:7711", account: "ann" });
 * client.on(Rooms.Said, (said) => console.log(`${said.from}: ${said.text}`));
 * await client.ready();
 * await client.request(Rooms.say, { room: "attic", text: "hello" });
 * ```
 *
 * Every request has exactly one outcome: an answer, or a `LinksteadError` whose `kind` says what happened and whose
 * `retry` says whether asking again can help. Numbers of 64 bits are BigInt. Nothing is thrown out of a socket's event.
 *
 * Parts: 1 codes, 2 errors, 3 bytes, 4 frames, 5 tagged fields, 6 messages, 7 one connection, 8 the client.
 */

// ---- 1. Codes -------------------------------------------------------------------------------------------------------

/**
 * Whether trying again can help. `never`: the same request fails the same way. `now` and `after`: nothing was executed,
 * try again, at once or after `retryAfterMs`. `unknown`: it may have been executed; look at the state first.
 * @typedef {"never" | "now" | "after" | "unknown"} Retry
 */

/**
 * One row of the registry of codes, docs/reference/errors.md.
 * @typedef {object} Code
 * @property {number} number
 * @property {string} name
 * @property {number} result what refuses a request with this code
 * @property {"client" | "peer" | "us"} blame whose fault it is: this client's, a node's or the network's, the cluster's
 * @property {Retry} retry
 * @property {number} retryAfterMs
 * @property {string} what what happened
 * @property {string} remedy what to do about it
 */

/** @type {(...row: [string, number, Code["blame"], Retry, number, string, string]) => Readonly<Code>} */
const code = (name, number, blame, retry, retryAfterMs, what, remedy) =>
  Object.freeze({
    ...{ name, number, result: number < 0 ? number : -100 - number },
    ...{ blame, retry, retryAfterMs, what, remedy },
  });

/** Every code of the framework. @type {readonly Readonly<Code>[]} */
export const CODES = Object.freeze([
  // codes: begin (written from wire::code)
  code("EXCEPTION", -1, "us", "unknown", 0, "the handler failed unexpectedly", "look for the panic or error in the provider's log"),
  code("TIMEOUT", -10, "peer", "unknown", 0, "no answer came in time", "ask again only with a request id"),
  code("BUSY", -19, "us", "after", 200, "too much is in flight", "wait and try again; if it lasts, add providers"),
  code("NOT_AUTHED", 1, "client", "never", 0, "a business message came before login", "send Auth first"),
  code("NO_PROVIDER", 2, "us", "after", 1000, "no provider of this module is reachable now", "try again; if it lasts, start one"),
  code("PROVIDER_BUSY", 3, "us", "after", 1000, "the provider is overloaded", "wait and try again"),
  code("PROVIDER_BROKEN", 4, "peer", "unknown", 0, "the provider this session was bound to is gone", "log in again"),
  code("FRAME_TOO_LARGE", 100, "client", "never", 0, "a frame announces more bytes than allowed", "send smaller frames or raise linkd.frame_max"),
  code("EMPTY_FRAME", 101, "client", "never", 0, "a frame announces no payload", "send at least the family byte"),
  code("BAD_FRAME", 102, "client", "never", 0, "a payload has no readable head", "check the client's encoder against docs/reference/wire.md"),
  code("HANDSHAKE_VIOLATION", 103, "client", "never", 0, "a handshake message came twice or out of order", "handshake once per connection"),
  code("ENCRYPTION_UNSUPPORTED", 104, "client", "never", 0, "the client asks for the ancestor's encryption or compression", "turn it off in the client"),
  code("HANDSHAKE_TIMEOUT", 105, "client", "now", 0, "the handshake did not finish in time", "connect again"),
  code("AUTH_TIMEOUT", 106, "client", "now", 0, "no valid Auth came in time", "connect again and send Auth at once"),
  code("AUTH_REFUSED", 107, "client", "never", 0, "the account or its proof was not accepted", "get a new ticket"),
  code("ALREADY_AUTHED", 108, "client", "never", 0, "an Auth came on a connection that is logged in", "open a new connection for another account"),
  code("ROLE_VIOLATION", 109, "client", "never", 0, "a message of another role came to this port", "check the address dialled"),
  code("SLOW_READER", 110, "client", "now", 0, "the client reads slower than it is sent to", "read more often"),
  code("TOO_MANY_CONNECTIONS", 111, "us", "after", 1000, "this linkd is full", "try another linkd"),
  code("TOO_MANY_FROM_ADDRESS", 112, "client", "after", 1000, "too many connections from one address", "close some"),
  code("TOO_MANY_UNAUTHED", 113, "us", "after", 1000, "too many connections wait for login", "try again"),
  code("SHUTTING_DOWN", 114, "us", "now", 0, "this node is stopping", "connect to another linkd"),
  code("FRAME_TIMEOUT", 115, "client", "now", 0, "a frame did not arrive whole in time", "send frames at once"),
  code("IDLE_TIMEOUT", 116, "client", "now", 0, "nothing was heard from the client for too long", "send keep-alives"),
  code("FLOOD", 117, "client", "after", 1000, "the client sends far more than its rate", "send less; see linkd.frames_per_second and linkd.bytes_per_second"),
  code("KICKED", 118, "us", "never", 0, "an operator ended the session", "nothing; ask the operator"),
  code("BAD_WEBSOCKET", 129, "client", "never", 0, "a WebSocket message is text or breaks the protocol", "send binary messages"),
  code("UNKNOWN_MODULE", 130, "client", "never", 0, "no provider has ever announced this module", "check the module id"),
  code("UNKNOWN_PROTOCOL", 131, "client", "never", 0, "the module has no such protocol", "check the protocol id against protocols.lock"),
  code("DECODE_ERROR", 132, "client", "never", 0, "the body could not be read", "encode the message the handler expects"),
  code("NO_ROLE", 133, "client", "never", 0, "this module is routed by role and none is logged in", "log a role in first"),
  code("VERSION_NOT_SERVED", 134, "client", "never", 0, "no provider serves the client's main version", "update the client"),
  code("VERSION_INVALID", 135, "client", "never", 0, "the client's version is not of the form a.b.c.d", "send four numbers of 0 to 65535"),
  code("REPLY_TOO_LARGE", 136, "us", "never", 0, "the answer is larger than a frame may be", "page the answer"),
  code("NAME_INVALID", 137, "client", "never", 0, "the account is empty, too long or not clean UTF-8", "send 1 to 128 bytes without control or text direction characters"),
  code("RESYNC_REQUIRED", 138, "client", "never", 0, "the request is older than what is remembered of this account's requests", "read the state anew, then send a new request"),
  code("TICKET_INVALID", 140, "client", "never", 0, "the ticket is not one that this cluster's keys have signed", "get a new ticket"),
  code("TICKET_EXPIRED", 141, "client", "never", 0, "the ticket's time is over", "get a new ticket and use it at once"),
  code("TICKET_NOT_YET_VALID", 142, "client", "never", 0, "the ticket's time has not begun", "set the clocks of login service and linkd"),
  code("TICKET_MISMATCH", 143, "client", "never", 0, "the ticket is for another account, cluster or version", "get a ticket for this one"),
  code("TICKET_REPLAYED", 144, "client", "never", 0, "the ticket was used before", "get a new ticket for each login"),
  code("TOO_MANY_ATTEMPTS", 145, "client", "after", 1000, "too many logins from this address have failed", "wait, then send a valid ticket"),
  code("AUTH_RUNNING", 146, "client", "never", 0, "an Auth came while another one is being judged", "wait for the answer to the first"),
  code("BAD_HELLO", 160, "peer", "never", 0, "the hello could not be accepted", "check cluster, role and version of the peer"),
  code("NOT_LOOPBACK", 161, "peer", "never", 0, "an insecure connection came from beyond loopback", "configure TLS between nodes"),
  code("PROTOCOL_ORDER", 162, "peer", "never", 0, "a message came before the one it needs", "announce, then bind, then subscribe"),
  code("LIMIT", 163, "peer", "never", 0, "a message exceeds a limit", "split it"),
  code("NOT_OWNER", 164, "peer", "never", 0, "the bind belongs to another provider", "only the owner may unbind"),
  code("DUPLICATE_NODE", 165, "peer", "after", 1000, "a node of this name is alive", "give each node its own id"),
  code("CONTRACT_CLASH", 166, "peer", "never", 0, "two projects implement one module", "give one of them another module id"),
  code("CHOICE_CLASH", 167, "peer", "never", 0, "two providers want one module routed differently", "agree on one choice"),
  code("UNKNOWN_SESSION", 168, "peer", "never", 0, "the client session does not exist", "forget it"),
  code("STALE_EPOCH", 169, "peer", "never", 0, "the sender's epoch is older than one already seen", "restart it"),
  code("DUPLICATE_SERVER_ID", 170, "peer", "after", 1000, "another live provider has this server id", "give each provider its own server_id"),
  code("BAD_MESSAGE", 171, "peer", "never", 0, "a message could not be read", "check that versions differ by at most one"),
  code("SUPERSEDED", 173, "peer", "never", 0, "a newer connection of the same node took this one's place", "nothing; the newer one serves"),
  code("IDENTITY_MISMATCH", 174, "peer", "never", 0, "a node says to be another one than its certificate", "give each node the certificate issued for its own cluster, role and id"),
  code("TAKEN", 175, "peer", "never", 0, "the key is held for another value", "whoever claimed it first has it"),
  code("NO_STORE", 176, "us", "never", 0, "the directory keeps nothing on a disk, which this needs", "set service_manager.store to a store on a disk"),
  code("NOT_LOGGED_IN", 180, "peer", "never", 0, "the provider has no session at the arbiter, or was evicted", "drop every record and log in anew"),
  code("BAD_STATE", 181, "peer", "never", 0, "a record can be asked for to share it or to modify it, and for nothing else", "check that versions differ by at most one"),
  code("KEY_INVALID", 182, "peer", "never", 0, "a record's key is empty or too long", "use keys of 1 to 1024 bytes"),
  code("QUOTA", 183, "peer", "never", 0, "the provider holds as many records as it may", "release some, or raise global_cache.held_max"),
  code("ID_CONFLICT", 184, "peer", "never", 0, "a request id is in use for something else", "give each request its own id"),
  code("OTHER_STORAGE", 185, "peer", "never", 0, "providers keep the records of one backend in different storages", "run them in one process, or use a backend that processes share"),
  code("WARMING", 186, "us", "after", 1000, "the arbiter has just started, and others may still use what was granted before", "try again"),
  code("UNAVAILABLE", 172, "peer", "after", 1000, "the peer can't be reached", "wait for it or look at its log"),
  // codes: end
]);

/** @param {number} number @returns {Readonly<Code> | undefined} the framework's code with this number */
export function findCode(number) {
  return CODES.find((code) => code.number === number);
}

// ---- 2. Errors ------------------------------------------------------------------------------------------------------

/**
 * What happened to a request, or what is wrong with a call.
 *
 * | kind | was it sent? |
 * |---|---|
 * | `bad_options`, `bad_message`, `too_large` | no: the caller's mistake, named in `message` |
 * | `not_connected`, `busy`, `closed` | no |
 * | `refused` | yes, and the answer is no: `code` and `codeName`, or the game's own number in `game` |
 * | `timeout`, `lost`, `bad_reply` | yes; the outcome is unknown |
 *
 * @typedef {"bad_options" | "bad_message" | "too_large" | "not_connected" | "busy" | "closed" | "refused" | "timeout"
 *   | "lost" | "bad_reply" | "bad_push" | "handler"} ErrorKind
 */

/** The one error of this library. See {@link ErrorKind} for what it means for a request. */
export class LinksteadError extends Error {
  /**
   * @param {ErrorKind} kind
   * @param {string} message
   * @param {{ code?: number, codeName?: string, game?: { module: number, code: number }, retry?: Retry,
   *   retryAfterMs?: number, cause?: unknown }} [more]
   */
  constructor(kind, message, more = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "LinksteadError";
    this.kind = kind;
    /** The number in the registry of codes; 0 when no code of the framework is involved. */
    this.code = more.code ?? 0;
    /** Its name, such as `NO_PROVIDER`; empty when no code of the framework is involved. */
    this.codeName = more.codeName ?? "";
    /** The module and its own number, when the game itself said no. */
    this.game = more.game;
    /** @type {Retry} */
    this.retry = more.retry ?? "never";
    this.retryAfterMs = more.retryAfterMs ?? 0;
  }
}

/** @param {bigint} result not 0 @returns {LinksteadError} */
function refusal(result) {
  const module = Number(result >> 32n);
  if (module > 0) {
    const number = Number(BigInt.asIntN(32, result));
    return new LinksteadError("refused", `module ${module} refuses with its code ${number}`, {
      game: { module, code: number },
    });
  }
  const row = CODES.find((code) => BigInt(code.result) === result);
  if (!row) return new LinksteadError("refused", `refused with the unknown code ${result}`);
  const { number, name, what, remedy, retry, retryAfterMs } = row;
  return new LinksteadError("refused", `${name} (${number}): ${what}; ${remedy}`, {
    code: number,
    codeName: name,
    retry,
    retryAfterMs,
  });
}

/**
 * Why a connection ended.
 *
 * | kind | is |
 * |---|---|
 * | `by_us` | `close()` was called |
 * | `by_server` | it closed without a word |
 * | `reported` | it said why: `code`, `name`, `text` |
 * | `refused` | the login was refused: `code`, `name` |
 * | `silent` | nothing was heard, keep-alives were not answered |
 * | `broken` | the network |
 * | `bad_bytes` | it sent what this wire doesn't know |
 * | `unreachable`, `connect_timeout` | the dial failed, or the login took too long |
 * | `no_token` | `token()` failed or has none |
 *
 * @typedef {object} Cause
 * @property {"by_us" | "by_server" | "reported" | "refused" | "silent" | "broken" | "bad_bytes" | "unreachable"
 *   | "connect_timeout" | "no_token"} kind
 * @property {number} code in the registry of codes, or the game's own when the game ended it; 0 is none
 * @property {string} name the code's name; empty when there is none
 * @property {string} text for people
 * @property {Retry} retry whether connecting again can help
 * @property {number} retryAfterMs
 */

/** @type {(kind: Cause["kind"], text: string, retry: Retry, more?: Partial<Cause>) => Cause} */
const cause = (kind, text, retry, more) => ({ kind, code: 0, name: "", text, retry, retryAfterMs: 0, ...more });

/**
 * What the server says went wrong outside any request. The connection may live on.
 * @typedef {object} Report
 * @property {number} from 0 the gateway, 1 a provider, 2 a dynamic module that is bound to nobody
 * @property {number} code from the gateway a number of the registry; from a provider the game's own, or KICKED
 * @property {string} name the code's name when it is the framework's
 * @property {string} text
 */

/** @type {(report: Report) => Cause} */
function reported(report) {
  const row = report.name ? findCode(report.code) : undefined;
  const words = row ? `${row.what}; ${row.remedy}` : report.text || `the game's code ${report.code}`;
  const { code: number, name } = report;
  const text = `ended by the server: ${name ? `${name} (${number}): ` : ""}${words}`;
  const retryAfterMs = row?.retryAfterMs ?? 0;
  return cause("reported", text, row?.retry ?? "never", { code: number, name, retryAfterMs });
}

// ---- 3. Bytes -------------------------------------------------------------------------------------------------------

/** Bytes that can't be read. Never leaves this file. */
class BadBytes extends Error {}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf8Lossy = new TextDecoder("utf-8", { ignoreBOM: true });
const utf8Encoder = new TextEncoder();

/** Reads from the front of bytes that it does not own. Throws BadBytes at their end, never reads beyond it. */
class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.end = bytes.length;
    /** The halves of the last varint. */
    this.low = 0;
    this.high = 0;
  }

  get done() {
    return this.at >= this.end;
  }

  u8() {
    if (this.at >= this.end) throw new BadBytes("the bytes end too early");
    return this.bytes[this.at++];
  }

  /** A view of the next bytes; whoever keeps it copies it. @param {number} count */
  take(count) {
    if (count > this.end - this.at) throw new BadBytes("the bytes end too early");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  /** @param {number} count */
  view(count) {
    const bytes = this.take(count);
    return new DataView(bytes.buffer, bytes.byteOffset, count);
  }

  /** The ancestor's signed number: its length stands in the first byte, the rest is big-endian. @returns {bigint} */
  long() {
    const first = this.u8();
    // A negative number is the bitwise complement of a non-negative one, length prefix included.
    const flip = first & 0x80 ? 0xff : 0;
    const lead = first ^ flip;
    let more = 7;
    let mask = 0;
    if (lead < 0x40) [more, mask] = [0, 0x3f];
    else if (lead < 0x60) [more, mask] = [1, 0x1f];
    else if (lead < 0x70) [more, mask] = [2, 0x0f];
    else if (lead < 0x78) [more, mask] = [3, 0x07];
    else if (lead < 0x7c) [more, mask] = [4, 0x03];
    else if (lead < 0x7e) [more, mask] = [5, 0x01];
    else if (lead === 0x7e) more = 6;
    else if (this.at >= this.end) throw new BadBytes("the bytes end too early");
    else if ((this.bytes[this.at] ^ flip) & 0x80) more = 8;
    let value = BigInt(lead & mask);
    for (const byte of this.take(more)) value = (value << 8n) | BigInt(byte ^ flip);
    if (more === 8) value &= 0x7fff_ffff_ffff_ffffn;
    return flip ? ~value : value;
  }

  /** The ancestor's unsigned 32-bit number. */
  uint() {
    const first = this.u8();
    let [more, mask] = [4, 0];
    if (first < 0x80) [more, mask] = [0, 0x7f];
    else if (first < 0xc0) [more, mask] = [1, 0x3f];
    else if (first < 0xe0) [more, mask] = [2, 0x1f];
    else if (first < 0xf0) [more, mask] = [3, 0x0f];
    let value = first & mask;
    for (const byte of this.take(more)) value = value * 256 + byte;
    return value;
  }

  /** A protobuf varint, into `low` and `high`. */
  varint() {
    this.low = 0;
    this.high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.u8();
      const bits = byte & 0x7f;
      if (shift === 63 && byte > 1) break;
      if (shift < 28) this.low |= bits << shift;
      else if (shift === 28) {
        this.low |= bits << 28;
        this.high |= bits >> 4;
      } else this.high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.low >>>= 0;
        this.high >>>= 0;
        return;
      }
    }
    throw new BadBytes("a number has more than 64 bits");
  }

  /** A protobuf varint of 64 bits. @returns {bigint} */
  varint64() {
    this.varint();
    return this.high === 0 ? BigInt(this.low) : (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /** The length in front of a string, bytes or a message. */
  length() {
    this.varint();
    if (this.high !== 0 || this.low > this.end - this.at) throw new BadBytes("the bytes end too early");
    return this.low;
  }
}

/** Grows as it is written to. */
class Writer {
  constructor() {
    this.buffer = new Uint8Array(64);
    this.at = 0;
  }

  /** @param {number} count @returns {number} where it begins */
  room(count) {
    const need = this.at + count;
    if (need > this.buffer.length) {
      const larger = new Uint8Array(Math.max(need, this.buffer.length * 2));
      larger.set(this.buffer);
      this.buffer = larger;
    }
    this.at = need;
    return need - count;
  }

  /** @param {number} byte */
  u8(byte) {
    const at = this.room(1);
    this.buffer[at] = byte;
  }

  /** @param {Uint8Array | readonly number[]} bytes */
  bytes(bytes) {
    const at = this.room(bytes.length);
    this.buffer.set(bytes, at);
  }

  /** @param {number} count */
  view(count) {
    const at = this.room(count);
    return new DataView(this.buffer.buffer, at, count);
  }

  /** The counterpart of `Reader.long`. @param {bigint} value of 64 bits */
  long(value) {
    const flip = value < 0n ? 0xff : 0;
    const magnitude = value < 0n ? ~value : value;
    const limits = [6n, 13n, 20n, 27n, 34n, 41n, 48n, 55n];
    const prefixes = [0x00, 0x40, 0x60, 0x70, 0x78, 0x7c, 0x7e, 0x7f, 0x7f];
    let more = limits.findIndex((bits) => magnitude < 1n << bits);
    if (more < 0) more = 8;
    const bytes = [];
    for (let i = more; i >= 0; i--) bytes.push(Number((magnitude >> BigInt(8 * i)) & 0xffn));
    if (more === 8) {
      bytes[0] = 0;
      bytes[1] |= 0x80;
    }
    bytes[0] |= prefixes[more];
    this.bytes(bytes.map((byte) => byte ^ flip));
  }

  /** The counterpart of `Reader.uint`. @param {number} value below 2^32 */
  uint(value) {
    if (value < 0x80) this.u8(value);
    else if (value < 0x4000) this.bytes([0x80 | (value >> 8), value & 0xff]);
    else if (value < 0x20_0000) this.bytes([0xc0 | (value >> 16), (value >> 8) & 0xff, value & 0xff]);
    else if (value < 0x1000_0000) this.view(4).setUint32(0, (0xe000_0000 | value) >>> 0);
    else {
      this.u8(0xf0);
      this.view(4).setUint32(0, value);
    }
  }

  /** A protobuf varint. @param {number} value below 2^32 */
  varint(value) {
    while (value > 0x7f) {
      this.u8((value & 0x7f) | 0x80);
      value >>>= 7;
    }
    this.u8(value);
  }

  /** A protobuf varint of 64 bits. @param {bigint} value */
  varint64(value) {
    let rest = BigInt.asUintN(64, value);
    while (rest > 0x7fn) {
      this.u8(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.u8(Number(rest));
  }

  finish() {
    return this.buffer.slice(0, this.at);
  }
}

// ---- 4. Frames ------------------------------------------------------------------------------------------------------

const HEADER_BYTES = 12;
/** The largest payload that a gateway may send: docs/reference/wire.md. */
const PAYLOAD_BYTES_CEILING = 2 * 1024 * 1024;
const RESPONSE = 0;
const REQUEST = 1;
const ONE_WAY = 2;
const CODE_PRESENT = 0x20;

/** @typedef {{ module: number, protocol: number }} TypeId */
/** @typedef {TypeId & { payload: Uint8Array }} Frame */
/** @typedef {{ family: number, code: bigint, session: bigint, body: Uint8Array }} Payload */

const SERVER_HELLO = { module: 0, protocol: -2018202792 };
const KEEP_ALIVE = { module: 0, protocol: -183352608 };
const AUTH = { module: 10000, protocol: -997899722 };
const REPORT_ERROR = { module: 11011, protocol: 918874807 };
/** The result that says UNKNOWN_PROTOCOL. */
const UNKNOWN_PROTOCOL = -231n;
/** The number that says it. */
const KICKED = 118;

/** @type {(a: TypeId, b: TypeId) => boolean} */
const same = (a, b) => a.module === b.module && a.protocol === b.protocol;

/**
 * @param {TypeId} type @param {number} family @param {bigint} session @param {Uint8Array} body @param {bigint} [code]
 * @returns {Uint8Array<ArrayBuffer>} a whole frame
 */
function encodeFrame({ module, protocol }, family, session, body, code = 0n) {
  const out = new Writer();
  out.room(HEADER_BYTES);
  out.u8(code === 0n ? family : family | CODE_PRESENT);
  if (code !== 0n) out.long(code);
  if (family !== ONE_WAY) out.long(session);
  out.bytes(body);
  const frame = out.finish();
  const header = new DataView(frame.buffer);
  header.setInt32(0, module, true);
  header.setInt32(4, protocol, true);
  header.setUint32(8, frame.length - HEADER_BYTES, true);
  return frame;
}

/** @param {Uint8Array} bytes @returns {Payload} */
function decodePayload(bytes) {
  const reader = new Reader(bytes);
  const first = reader.u8();
  const family = first & ~CODE_PRESENT;
  if (family > ONE_WAY) throw new BadBytes(`a payload begins with ${first}, which names no family of this wire`);
  const code = first & CODE_PRESENT ? reader.long() : 0n;
  const session = family === ONE_WAY ? 0n : reader.long();
  return { family, code, session, body: bytes.subarray(reader.at) };
}

/** Puts the byte stream that comes in pieces together to frames. Holds at most one frame and one piece. */
class Inbox {
  constructor() {
    /** @type {Uint8Array} */
    this.buffer = new Uint8Array(0);
    this.start = 0;
    this.end = 0;
  }

  /** @param {Uint8Array} piece */
  push(piece) {
    if (this.start === this.end) {
      // The usual case, whole frames in one piece, is read in place.
      [this.buffer, this.start, this.end] = [piece, 0, piece.length];
      return;
    }
    const waiting = this.end - this.start;
    const need = waiting + piece.length;
    // Frames given out are views of a buffer, so a buffer is never written to where it was read.
    if (this.end + piece.length > this.buffer.length) {
      const larger = new Uint8Array(Math.max(need, Math.min(need * 2, HEADER_BYTES + PAYLOAD_BYTES_CEILING)));
      larger.set(this.buffer.subarray(this.start, this.end));
      [this.buffer, this.start, this.end] = [larger, 0, waiting];
    }
    this.buffer.set(piece, this.end);
    this.end += piece.length;
  }

  /** The next whole frame, or null. Judges an announced size before the payload has come. @returns {Frame | null} */
  next() {
    const waiting = this.end - this.start;
    if (waiting < HEADER_BYTES) return null;
    const header = new DataView(this.buffer.buffer, this.buffer.byteOffset + this.start, HEADER_BYTES);
    const size = header.getUint32(8, true);
    if (size === 0) throw new BadBytes("a frame announces no payload");
    if (size > PAYLOAD_BYTES_CEILING) {
      throw new BadBytes(`a frame announces ${size} payload bytes, more than the ${PAYLOAD_BYTES_CEILING} allowed`);
    }
    if (waiting < HEADER_BYTES + size) return null;
    const from = this.start + HEADER_BYTES;
    this.start = from + size;
    const payload = this.buffer.subarray(from, this.start);
    return { module: header.getInt32(0, true), protocol: header.getInt32(4, true), payload };
  }
}

// ---- 5. Tagged fields: the ancestor's encoding, of Auth and ReportError only ----------------------------------------

const TAGGED_DEPTH_MAX = 32;

/** @param {Uint8Array} body @returns {Map<number, bigint | Uint8Array>} its integers and byte strings */
function decodeTagged(body) {
  const reader = new Reader(body);
  const fields = new Map();
  const at = { id: 0 };
  for (let kind = tag(reader, at); kind !== null; kind = tag(reader, at)) {
    if (kind === 0) fields.set(at.id, reader.long());
    else if (kind === 3) fields.set(at.id, reader.take(reader.uint()));
    else skipTagged(reader, kind, 0);
  }
  return fields;
}

/** @type {(reader: Reader, at: { id: number }) => number | null} */
function tag(reader, at) {
  const first = reader.u8();
  if (first === 0) return null;
  at.id += first >> 4 === 15 ? reader.uint() + 15 : first >> 4;
  return first & 15;
}

/** @type {(reader: Reader, kind: number, depth: number) => void} */
function skipTagged(reader, kind, depth) {
  if (depth > TAGGED_DEPTH_MAX) throw new BadBytes("fields are nested too deep");
  const sizes = /** @type {Record<number, number>} */ ({ 1: 4, 2: 8, 8: 8, 10: 12, 12: 16 });
  if (kind === 0) reader.long();
  else if (kind in sizes) reader.take(sizes[kind]);
  else if (kind === 3) reader.take(reader.uint());
  else if (kind === 4) {
    const head = reader.u8();
    const count = head >> 4 === 15 ? reader.uint() + 15 : head >> 4;
    for (let i = 0; i < count; i++) skipTagged(reader, head & 15, depth + 1);
  } else if (kind === 5) {
    const kinds = reader.u8();
    for (let i = reader.uint(); i > 0; i--) {
      skipTagged(reader, kinds >> 4, depth + 1);
      skipTagged(reader, kinds & 15, depth + 1);
    }
  } else if (kind === 6 || kind === 7) {
    if (kind === 7) reader.long();
    const at = { id: 0 };
    for (let inner = tag(reader, at); inner !== null; inner = tag(reader, at)) skipTagged(reader, inner, depth + 1);
  } else if (kind === 9 || kind === 11) {
    for (let i = kind === 9 ? 2 : 3; i > 0; i--) reader.long();
  } else throw new BadBytes(`a field has the unknown kind ${kind}`);
}

/** @param {readonly Uint8Array[]} fields 1, 2, … ; empty ones are left out @returns {Uint8Array} */
function encodeTagged(fields) {
  const out = new Writer();
  let last = 0;
  fields.forEach((field, index) => {
    if (field.length === 0) return;
    out.u8(((index + 1 - last) << 4) | 3);
    out.uint(field.length);
    out.bytes(field);
    last = index + 1;
  });
  out.u8(0);
  return out.finish();
}

/** @param {Uint8Array} body @returns {Report} */
function decodeReport(body) {
  const fields = decodeTagged(body);
  const number = (/** @type {number} */ id) => {
    const value = fields.get(id);
    return typeof value === "bigint" ? Number(value) : 0;
  };
  const text = fields.get(3);
  const [from, code] = [number(1), number(2)];
  // A game's kick carries the game's own code; only an operator's carries the framework's.
  const ours = from === 0 || code === KICKED;
  return {
    from,
    code,
    name: (ours && findCode(code)?.name) || "",
    text: text instanceof Uint8Array ? utf8Lossy.decode(text) : "",
  };
}

// ---- 6. Messages: protobuf, for types that a generator has written --------------------------------------------------

/**
 * @typedef {"int32" | "int64" | "uint32" | "uint64" | "sint32" | "sint64" | "fixed32" | "fixed64" | "sfixed32"
 *   | "sfixed64" | "float" | "double" | "bool" | "string" | "bytes" | "enum"} ScalarKind
 */

/**
 * One field. `optional`: it may be absent, and is then undefined. `oneof`: at most one of the group is present.
 * `entry`: a map of these two; it is a JS Map.
 * @typedef {object} Field
 * @property {number} tag
 * @property {string} name
 * @property {ScalarKind | "message" | "map"} kind
 * @property {boolean} [repeated]
 * @property {boolean} [packed]
 * @property {boolean} [optional]
 * @property {string} [oneof]
 * @property {() => MessageType<any>} [type]
 * @property {readonly [Field, Field]} [entry]
 */

/**
 * The shape of a message.
 * @template [T=any]
 * @typedef {{ readonly name: string, readonly fields: readonly Field[], readonly of?: T }} MessageType
 */

/**
 * What a message may be made from: fields that are left out have their default.
 * @template T
 * @typedef {T extends Uint8Array | bigint | ReadonlyMap<any, any> ? T
 *   : T extends readonly (infer E)[] ? readonly Input<E>[]
 *   : T extends object ? { readonly [K in keyof T]?: Input<T[K]> } : T} Input
 */

/**
 * A request that is answered.
 * @template [Q=any]
 * @template [A=any]
 * @typedef {TypeId & { readonly name: string, readonly request: MessageType<Q>,
 *   readonly reply: MessageType<A> | null }} Rpc
 */

/**
 * A message that nobody answers.
 * @template [Q=any]
 * @typedef {TypeId & { readonly name: string, readonly notify: MessageType<Q> }} Notify
 */

/**
 * A message that providers send unasked.
 * @template [T=any]
 * @typedef {TypeId & { readonly name: string, readonly push: MessageType<T> }} Push
 */

/** As the providers' library. */
const MESSAGE_DEPTH_MAX = 100;

/** @type {Readonly<Record<string, number>>} */
const WIRE_TYPES = Object.freeze({
  ...{ int32: 0, int64: 0, uint32: 0, uint64: 0, sint32: 0, sint64: 0, bool: 0, enum: 0 },
  ...{ fixed64: 1, sfixed64: 1, double: 1, fixed32: 5, sfixed32: 5, float: 5 },
  ...{ string: 2, bytes: 2, message: 2, map: 2 },
});

/**
 * Which values a kind of number takes.
 * @type {Readonly<Record<string, readonly [number | bigint, number | bigint]>>}
 */
const RANGES = (() => {
  const [i32, u32] = [[-0x8000_0000, 0x7fff_ffff], [0, 0xffff_ffff]];
  const [i64, u64] = [[-(1n << 63n), (1n << 63n) - 1n], [0n, (1n << 64n) - 1n]];
  const ranges = { int32: i32, sint32: i32, sfixed32: i32, enum: i32, uint32: u32, fixed32: u32 };
  return /** @type {any} */ ({ ...ranges, int64: i64, sint64: i64, sfixed64: i64, uint64: u64, fixed64: u64 });
})();

/**
 * @template T
 * @param {MessageType<T>} type
 * @param {Input<T>} value
 * @returns {Uint8Array}
 * @throws {LinksteadError} `bad_message`, naming the field
 */
export function encodeMessage(type, value) {
  const out = new Writer();
  writeMessage(out, type, value, type.name, 0);
  return out.finish();
}

/** @type {(at: string, what: string) => LinksteadError} */
const badMessage = (at, what) => new LinksteadError("bad_message", `${at} ${what}; nothing was sent`);

/** @type {(out: Writer, type: MessageType, value: any, at: string, depth: number) => void} */
function writeMessage(out, type, value, at, depth) {
  if (depth > MESSAGE_DEPTH_MAX) throw badMessage(at, `is nested more than ${MESSAGE_DEPTH_MAX} deep`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw badMessage(at, "must be an object");
  const names = type.fields.map((field) => field.name);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown) throw badMessage(at, `has no field ${unknown}; it has ${names.join(", ") || "none"}`);
  /** @type {Map<string, string>} */
  const chosen = new Map();
  for (const field of type.fields) {
    const given = value[field.name];
    if (given === undefined) continue;
    if (field.oneof) {
      const other = chosen.get(field.oneof);
      if (other) throw badMessage(at, `has both ${other} and ${field.name}, of which at most one may be there`);
      chosen.set(field.oneof, field.name);
    }
    writeField(out, field, given, `${at}.${field.name}`, depth);
  }
}

/** @type {(out: Writer, field: Field, value: any, at: string, depth: number) => void} */
function writeField(out, field, value, at, depth) {
  const key = (field.tag << 3) | WIRE_TYPES[field.kind];
  if (field.kind === "map") {
    if (!(value instanceof Map)) throw badMessage(at, "must be a Map");
    const fields = /** @type {readonly [Field, Field]} */ (field.entry);
    for (const [k, v] of value) {
      const entry = new Writer();
      writeMessage(entry, { name: at, fields }, { key: k, value: v }, at, depth + 1);
      out.varint(key >>> 0);
      writeBytes(out, entry.finish());
    }
  } else if (field.repeated) {
    if (!Array.isArray(value)) throw badMessage(at, "must be an array");
    if (field.packed && value.length > 0) {
      const packed = new Writer();
      for (const one of value) writeValue(packed, field, one, at, depth);
      out.varint(((field.tag << 3) | 2) >>> 0);
      writeBytes(out, packed.finish());
      return;
    }
    for (const one of value) {
      out.varint(key >>> 0);
      writeValue(out, field, one, at, depth);
    }
  } else if (field.optional || field.kind === "message" || !isDefault(field, value, at)) {
    out.varint(key >>> 0);
    writeValue(out, field, value, at, depth);
  }
}

/** Also refuses a default of the wrong type. @type {(field: Field, value: any, at: string) => boolean} */
function isDefault(field, value, at) {
  check(field.kind, value, at);
  return field.kind === "bytes" ? value.length === 0 : value === zero(field.kind) || value === "" || value === false;
}

/** @type {(kind: string, value: any, at: string) => void} */
function check(kind, value, at) {
  const range = RANGES[kind];
  if (range) {
    const wants = typeof range[0];
    const whole = typeof value === wants && (wants === "bigint" || Number.isInteger(value));
    if (!whole) throw badMessage(at, wants === "bigint" ? "must be a BigInt" : "must be a whole number");
    if (value < range[0] || value > range[1]) throw badMessage(at, `must be between ${range[0]} and ${range[1]}`);
  } else if (kind === "bool" && typeof value !== "boolean") throw badMessage(at, "must be true or false");
  else if (kind === "float" || kind === "double") {
    if (typeof value !== "number") throw badMessage(at, "must be a number");
  } else if (kind === "bytes" && !(value instanceof Uint8Array)) throw badMessage(at, "must be a Uint8Array");
  else if (kind === "string") {
    if (typeof value !== "string") throw badMessage(at, "must be a string");
    // Encoding would quietly replace it.
    if (/\p{Surrogate}/u.test(value)) throw badMessage(at, "holds half of a character");
  }
}

/** @type {(out: Writer, bytes: Uint8Array) => void} */
function writeBytes(out, bytes) {
  out.varint(bytes.length);
  out.bytes(bytes);
}

/** @type {(out: Writer, field: Field, value: any, at: string, depth: number) => void} */
function writeValue(out, field, value, at, depth) {
  check(field.kind, value, at);
  switch (field.kind) {
    case "message": {
      const inner = new Writer();
      const type = /** @type {() => MessageType} */ (field.type)();
      writeMessage(inner, type, value, at, depth + 1);
      return writeBytes(out, inner.finish());
    }
    case "string":
      return writeBytes(out, utf8Encoder.encode(value));
    case "bytes":
      return writeBytes(out, value);
    case "bool":
      return out.u8(value ? 1 : 0);
    case "uint32":
      return out.varint(value);
    case "int32":
    case "enum":
      return value < 0 ? out.varint64(BigInt(value)) : out.varint(value);
    case "sint32":
      return out.varint(((value << 1) ^ (value >> 31)) >>> 0);
    case "sint64":
      return out.varint64((value << 1n) ^ (value >> 63n));
    case "int64":
    case "uint64":
      return out.varint64(value);
    case "fixed32":
      return out.view(4).setUint32(0, value, true);
    case "sfixed32":
      return out.view(4).setInt32(0, value, true);
    case "float":
      return out.view(4).setFloat32(0, value, true);
    case "double":
      return out.view(8).setFloat64(0, value, true);
    case "fixed64":
      return out.view(8).setBigUint64(0, value, true);
    case "sfixed64":
      return out.view(8).setBigInt64(0, value, true);
    default:
      throw badMessage(at, `has the unknown kind ${field.kind}`);
  }
}

/** @type {(kind: string) => any} */
function zero(kind) {
  if (kind === "string") return "";
  if (kind === "bytes") return new Uint8Array(0);
  if (kind === "bool") return false;
  return typeof RANGES[kind]?.[0] === "bigint" ? 0n : 0;
}

/**
 * @template T
 * @param {MessageType<T>} type
 * @param {Uint8Array} bytes
 * @returns {T}
 * @throws {LinksteadError} `bad_reply` when they are no such message
 */
export function decodeMessage(type, bytes) {
  try {
    return /** @type {T} */ (readMessage(new Reader(bytes), type, defaults(type), 0));
  } catch (error) {
    if (!(error instanceof BadBytes)) throw error;
    throw new LinksteadError("bad_reply", `${type.name} can't be read: ${error.message}`, { retry: "unknown" });
  }
}

/** @type {(type: MessageType) => any} */
function defaults(type) {
  /** @type {any} */
  const value = {};
  for (const field of type.fields) {
    if (field.kind === "map") value[field.name] = new Map();
    else if (field.repeated) value[field.name] = [];
    else if (!field.optional && field.kind !== "message") value[field.name] = zero(field.kind);
  }
  return value;
}

/**
 * Fills `value` to the end of the bytes.
 * @type {(reader: Reader, type: MessageType, value: any, depth: number) => any}
 */
function readMessage(reader, type, value, depth) {
  if (depth > MESSAGE_DEPTH_MAX) throw new BadBytes(`messages are nested more than ${MESSAGE_DEPTH_MAX} deep`);
  while (!reader.done) {
    const [tag, wire] = readKey(reader);
    const field = type.fields.find((field) => field.tag === tag);
    if (field) readField(reader, type, field, wire, value, depth);
    else skip(reader, tag, wire, depth);
  }
  return value;
}

/** @type {(reader: Reader) => [number, number]} */
function readKey(reader) {
  reader.varint();
  const [tag, wire] = [reader.low >>> 3, reader.low & 7];
  if (reader.high !== 0 || tag === 0) throw new BadBytes("a field has an impossible number");
  return [tag, wire];
}

/** @type {(reader: Reader, type: MessageType, field: Field, wire: number, value: any, depth: number) => void} */
function readField(reader, type, field, wire, value, depth) {
  const wants = WIRE_TYPES[field.kind];
  const name = field.name;
  if (field.repeated && wire === 2 && wants !== 2) {
    const packed = new Reader(reader.take(reader.length()));
    while (!packed.done) value[name].push(readScalar(packed, field.kind));
    return;
  }
  if (wire !== wants) throw new BadBytes(`field ${name} has wire type ${wire}, not ${wants}`);
  if (field.kind === "map") {
    const fields = /** @type {readonly [Field, Field]} */ (field.entry);
    const inner = { name, fields };
    const entry = readMessage(new Reader(reader.take(reader.length())), inner, defaults(inner), depth + 1);
    const missing = () => defaults(/** @type {() => MessageType} */ (fields[1].type)());
    value[name].set(entry.key, entry.value === undefined ? missing() : entry.value);
    return;
  }
  /** @type {any} */
  let read;
  if (field.kind === "message") {
    const inner = /** @type {() => MessageType} */ (field.type)();
    // A message that comes twice is one message.
    const into = (!field.repeated && value[name]) || defaults(inner);
    read = readMessage(new Reader(reader.take(reader.length())), inner, into, depth + 1);
  } else read = readScalar(reader, field.kind);
  if (field.repeated) return void value[name].push(read);
  if (field.oneof) {
    for (const other of type.fields) if (other.oneof === field.oneof && other !== field) delete value[other.name];
  }
  value[name] = read;
}

/** @type {(reader: Reader, kind: string) => any} */
function readScalar(reader, kind) {
  switch (kind) {
    case "string":
      return text(reader.take(reader.length()));
    case "bytes":
      return reader.take(reader.length()).slice();
    case "bool":
      reader.varint();
      return reader.low !== 0 || reader.high !== 0;
    case "uint32":
      reader.varint();
      return reader.low;
    case "int32":
    case "enum":
      reader.varint();
      return reader.low | 0;
    case "sint32":
      reader.varint();
      return (reader.low >>> 1) ^ -(reader.low & 1);
    case "uint64":
      return reader.varint64();
    case "int64":
      return BigInt.asIntN(64, reader.varint64());
    case "sint64": {
      const raw = reader.varint64();
      return (raw >> 1n) ^ -(raw & 1n);
    }
    case "fixed32":
      return reader.view(4).getUint32(0, true);
    case "sfixed32":
      return reader.view(4).getInt32(0, true);
    case "float":
      return reader.view(4).getFloat32(0, true);
    case "double":
      return reader.view(8).getFloat64(0, true);
    case "fixed64":
      return reader.view(8).getBigUint64(0, true);
    case "sfixed64":
      return reader.view(8).getBigInt64(0, true);
    default:
      throw new BadBytes(`the unknown kind ${kind}`);
  }
}

/** @type {(bytes: Uint8Array) => string} */
function text(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new BadBytes("a string is not UTF-8");
  }
}

/**
 * Passes over a field that the type doesn't have.
 * @type {(reader: Reader, tag: number, wire: number, depth: number) => void}
 */
function skip(reader, tag, wire, depth) {
  if (depth > MESSAGE_DEPTH_MAX) throw new BadBytes(`groups are nested more than ${MESSAGE_DEPTH_MAX} deep`);
  if (wire === 0) reader.varint();
  else if (wire === 1) reader.take(8);
  else if (wire === 2) reader.take(reader.length());
  else if (wire === 5) reader.take(4);
  else if (wire === 3) {
    for (;;) {
      const [inner, kind] = readKey(reader);
      if (kind === 4 && inner === tag) return;
      skip(reader, inner, kind, depth + 1);
    }
  } else throw new BadBytes(`a field has the impossible wire type ${wire}`);
}

// ---- 7. One connection ----------------------------------------------------------------------------------------------

/**
 * A request that waits for its answer.
 * @typedef {object} Waiting
 * @property {(body: Uint8Array) => void} resolve
 * @property {(error: LinksteadError) => void} reject
 * @property {any} timer
 * @property {TypeId} type
 */

/**
 * What a connection tells its client.
 * @typedef {object} Hooks
 * @property {() => void} opened the login is accepted
 * @property {(type: TypeId, body: Uint8Array) => void} push
 * @property {(report: Report) => void} report
 * @property {(cause: Cause) => void} ended exactly once, last
 */

const LOST = "the connection ended before the answer; the outcome is unknown";

/** One socket, from its dial to its end. Its requests never outlive it, and a late event of it reaches nobody. */
class Connection {
  /** @param {Settings} settings @param {string} url @param {Stats} stats @param {Hooks} hooks */
  constructor(settings, url, stats, hooks) {
    this.settings = settings;
    this.stats = stats;
    this.hooks = hooks;
    this.inbox = new Inbox();
    /** @type {Map<bigint, Waiting>} */
    this.waiting = new Map();
    this.session = 0n;
    this.opened = false;
    this.over = false;
    /** The report that nothing has followed so far: if the connection ends now, that is why. @type {Report | null} */
    this.lastWords = null;
    [this.heard, this.spoke, this.asked] = [true, true, false];
    this.beat = /** @type {any} */ (undefined);
    /** @type {WebSocket} */
    this.socket = new settings.WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => this.#guarded(() => this.#received(data));
    this.socket.onclose = ({ code, reason }) => this.#closed(code, reason);
    // It says nothing that the close behind it doesn't say, and some implementations throw without it.
    this.socket.onerror = () => {};
    const late = `the login took longer than ${settings.connectTimeoutMs} ms`;
    this.dialTimer = setTimeout(() => this.end(cause("connect_timeout", late, "now")), settings.connectTimeoutMs);
  }

  /** Logs in as soon as the socket is open. @param {string} token */
  logIn(token) {
    const { account, version, queueToken } = this.settings;
    const fields = [account, token, version].map((text) => utf8Encoder.encode(text));
    this.socket.onopen = () => this.#guarded(() => {
      const session = ++this.session;
      const answered = () => {
        clearTimeout(this.dialTimer);
        this.opened = true;
        this.beat = setInterval(() => this.#guarded(() => this.#keepAlive()), this.settings.keepAliveMs);
        this.hooks.opened();
      };
      const refused = (/** @type {LinksteadError} */ error) => {
        // Either the answer says no, or the connection has ended already and then this changes nothing.
        const more = { code: error.code, name: error.codeName, retryAfterMs: error.retryAfterMs };
        this.end(cause("refused", error.message, error.retry, more));
      };
      this.waiting.set(session, { resolve: answered, reject: refused, timer: undefined, type: AUTH });
      this.#write(encodeFrame(AUTH, REQUEST, session, encodeTagged([...fields, queueToken])));
    });
  }

  /** @type {(type: TypeId, body: Uint8Array, timeoutMs: number) => Promise<Uint8Array>} */
  request(type, body, timeoutMs) {
    return new Promise((resolve, reject) => {
      if (this.waiting.size >= this.settings.inFlightMax) {
        throw new LinksteadError("busy", `${this.waiting.size} requests wait already; nothing was sent`, SOON);
      }
      const session = ++this.session;
      this.send(encodeFrame(type, REQUEST, session, body));
      const late = () => {
        this.waiting.delete(session);
        const text = `no answer within ${timeoutMs} ms; the outcome is unknown`;
        reject(new LinksteadError("timeout", text, { retry: "unknown" }));
      };
      this.waiting.set(session, { resolve, reject, timer: setTimeout(late, timeoutMs), type });
    });
  }

  /** Throws when there is no room, and nothing is sent then. @param {Uint8Array<ArrayBuffer>} frame */
  send(frame) {
    const { payloadBytesMax, outBytesMax } = this.settings;
    const size = frame.length - HEADER_BYTES;
    if (size > payloadBytesMax) {
      const text = `the message has ${size} bytes, at most ${payloadBytesMax} may be sent; send less`;
      throw new LinksteadError("too_large", text);
    }
    // A socket that is closing would throw it away without a word.
    if (this.over || this.socket.readyState !== 1) throw notConnected();
    const queued = this.socket.bufferedAmount;
    if (queued > 0 && queued + frame.length > outBytesMax) {
      throw new LinksteadError("busy", `${queued} bytes wait to be sent already; nothing was sent`, SOON);
    }
    this.#write(frame);
  }

  /** Ends it once and for all. Every request in flight is answered here. @param {Cause} why */
  end(why) {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.dialTimer);
    clearInterval(this.beat);
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    try {
      this.socket.close();
    } catch {
      // A socket that can't be closed is closed.
    }
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      const more = { code: why.kind === "reported" ? why.code : 0, codeName: why.name, cause: why };
      reject(new LinksteadError("lost", `${LOST} (${why.text})`, { ...more, retry: "unknown" }));
    }
    this.waiting.clear();
    this.hooks.ended(why);
  }

  /** @param {Uint8Array<ArrayBuffer>} frame */
  #write(frame) {
    this.spoke = true;
    this.socket.send(frame);
  }

  /** Nothing leaves an event of the socket: what can't be read ends the connection. @param {() => void} work */
  #guarded(work) {
    if (this.over) return;
    try {
      work();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const bad = error instanceof BadBytes;
      this.end(
        bad
          ? cause("bad_bytes", `the server sent what this wire doesn't know: ${text}`, "never")
          : cause("broken", `the connection failed: ${text}`, "now"),
      );
    }
  }

  /** @param {unknown} data */
  #received(data) {
    if (!(data instanceof ArrayBuffer)) throw new BadBytes("a text message");
    this.heard = true;
    this.inbox.push(new Uint8Array(data));
    // A handler may close the client between two frames.
    for (let frame = this.inbox.next(); frame !== null; frame = this.inbox.next()) {
      this.#frame(frame, decodePayload(frame.payload));
      if (this.over) return;
    }
  }

  /** @param {Frame} frame @param {Payload} payload */
  #frame(frame, { family, code, session, body }) {
    this.lastWords = null;
    if (family === RESPONSE) this.#response(frame, code, session, body);
    else if (family === REQUEST) this.#asked(frame, session);
    else if (same(frame, REPORT_ERROR)) {
      const report = decodeReport(body);
      this.lastWords = report;
      this.hooks.report(report);
    } else if (frame.module === 0) {
      // Over TCP a gateway greets; here it need not, and what else it may say later is passed over.
      if (!same(frame, SERVER_HELLO)) this.stats.unexpected++;
    } else this.hooks.push(frame, body);
  }

  /** @param {TypeId} type @param {bigint} code @param {bigint} session @param {Uint8Array} body */
  #response(type, code, session, body) {
    if (same(type, KEEP_ALIVE)) return;
    const waiting = this.waiting.get(session);
    // An answer belongs to a request of the same protocol on this very connection.
    if (!waiting || !same(waiting.type, type)) return void this.stats.lateReplies++;
    this.waiting.delete(session);
    clearTimeout(waiting.timer);
    if (code === 0n) waiting.resolve(body);
    else waiting.reject(refusal(code));
  }

  /** The server asks us: only whether we live. @param {TypeId} type @param {bigint} session */
  #asked(type, session) {
    const alive = same(type, KEEP_ALIVE);
    if (!alive) this.stats.unexpected++;
    // While so much waits to be sent, those bytes show that we live.
    if (this.socket.bufferedAmount > this.settings.outBytesMax) return;
    this.#write(encodeFrame(type, RESPONSE, session, new Uint8Array(1), alive ? 0n : UNKNOWN_PROTOCOL));
  }

  /**
   * Once per interval. Counts intervals and not the time: a browser slows the timers of a page in the background down,
   * and a machine that slept must first be given the chance to hear.
   */
  #keepAlive() {
    if (this.heard) this.asked = false;
    if (this.asked) {
      return this.end(cause("silent", "the server is silent: a keep-alive was not answered", "now"));
    }
    if (!this.heard || !this.spoke) {
      this.asked = true;
      this.#write(encodeFrame(KEEP_ALIVE, REQUEST, ++this.session, new Uint8Array(1)));
    }
    this.heard = this.spoke = false;
  }

  /** @param {number} code @param {string} reason */
  #closed(code, reason) {
    const words = reason || (code === 1006 ? "" : `WebSocket code ${code}`);
    if (this.lastWords) this.end(reported(this.lastWords));
    else if (!this.opened) {
      const text = `no gateway lets us in at ${this.socket.url}${words && `: ${words}`}`;
      this.end(cause("unreachable", text, "now"));
    } else if (code === 1006) this.end(cause("broken", "the connection broke", "now"));
    else this.end(cause("by_server", `closed by the server${words && `: ${words}`}`, "now"));
  }
}

const SOON = Object.freeze({ retry: /** @type {Retry} */ ("after"), retryAfterMs: 200 });

const notConnected = () => new LinksteadError("not_connected", "there is no connection now; nothing was sent", SOON);

// ---- 8. The client --------------------------------------------------------------------------------------------------

/**
 * Where to connect, as whom, and every bound.
 * @typedef {object} Options
 * @property {string | readonly string[]} url one gateway or several, as `ws://` or `wss://` addresses. The account's
 *   hash decides which is tried first, so that players spread; the others follow in order
 * @property {string} account 1 to 128 bytes of UTF-8 without control characters
 * @property {string | (() => string | null | Promise<string | null>)} [token] proof of the account. A function is asked
 *   before each dial, since a ticket is good for one login: it returns a fresh one, or null when there is none any more,
 *   which closes the client. When it fails, it is asked again later, as after a failed dial
 * @property {string} [version] the game's version as "a.b.c.d", or empty: then any main version serves this client
 * @property {Uint8Array} [queueToken] what a login queue gave this account
 * @property {boolean} [reconnect] dial again when the connection is lost; default true
 * @property {number} [triesMax] dials in a row that may fail before the client closes; 0 is for ever; default 20
 * @property {number} [firstWaitMs] bound of the first wait between dials; later waits double; default 200
 * @property {number} [waitMaxMs] bound of the later waits; default 10 000
 * @property {number} [stableMs] a connection that lived this long makes the waits short again; default 10 000
 * @property {number} [connectTimeoutMs] how long dial and login may take, and `token()`; default 10 000
 * @property {number} [timeoutMs] how long a request waits for its answer; default 10 000
 * @property {number} [keepAliveMs] how often the silence is judged; default 25 000
 * @property {number} [inFlightMax] requests that may wait for an answer at once; one more is `busy`; default 64
 * @property {number} [outBytesMax] bytes that may wait to be sent; beyond it a message is `busy`; default 1 MiB
 * @property {number} [payloadBytesMax] bytes of one message; a larger one is `too_large`; default 64 KiB
 * @property {number} [first] which address is tried first, in place of the account's hash
 * @property {typeof WebSocket} [WebSocket] another implementation; Node before 22 has none of its own
 */

/** @typedef {Required<Omit<Options, "url" | "token" | "first">> & { token: NonNullable<Options["token"]> }} Settings */

/**
 * What a client has counted since it was made.
 * @typedef {object} Stats
 * @property {number} pushes received
 * @property {number} ignored pushes for which there was no handler
 * @property {number} lateReplies answers that came after their request was given up, or to no request
 * @property {number} unexpected messages of the framework or requests to us that this client doesn't know
 * @property {number} badPushes pushes that could not be read; each is an `error` too
 * @property {number} reconnects
 */

/**
 * `connecting`: the first dial. `open`: logged in; `reconnected` tells that it was open before, and that to the game
 * this is a new session. `reconnecting`: lost, dials again after `waitMs`. `closed`: at its end.
 * @typedef {object} StateEvent
 * @property {"connecting" | "open" | "reconnecting" | "closed"} state
 * @property {string} url the gateway that is or was used
 * @property {boolean} reconnected
 * @property {number} tries dials since it was last open
 * @property {number} waitMs
 * @property {Cause | null} cause why it is not open; null while connecting for the first time and while open
 */

/**
 * @typedef {object} Events
 * @property {StateEvent} state each change of the state
 * @property {Cause} closed the last event
 * @property {Report} report
 * @property {LinksteadError} error a push that can't be read (`bad_push`), or a handler that threw (`handler`)
 */

const DEFAULTS = Object.freeze({
  ...{ token: "", version: "", reconnect: true, triesMax: 20, firstWaitMs: 200, waitMaxMs: 10_000, stableMs: 10_000 },
  ...{ connectTimeoutMs: 10_000, timeoutMs: 10_000, keepAliveMs: 25_000, inFlightMax: 64 },
  ...{ outBytesMax: 1024 * 1024, payloadBytesMax: 64 * 1024 },
});

/** @type {(what: string) => LinksteadError} */
const badOptions = (what) => new LinksteadError("bad_options", `the options are wrong: ${what}`);

/**
 * Makes a client, which begins to connect at once. Handlers put on it right away miss nothing.
 *
 * At first each address is tried once; when none lets us in, the client closes. Later a lost connection is dialled
 * again, see {@link Options}.
 *
 * @param {Options} options
 * @returns {Client}
 * @throws {LinksteadError} `bad_options`, before anything is dialled
 */
export function connect(options) {
  const { url, first, ...given } = options;
  const known = [...Object.keys(DEFAULTS), "account", "queueToken", "WebSocket"];
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown) throw badOptions(`there is no option ${unknown}`);
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const built = { queueToken: new Uint8Array(0), WebSocket: globalThis.WebSocket, ...DEFAULTS, ...set };
  const settings = /** @type {Settings} */ (built);
  const urls = (typeof url === "string" ? [url] : [...(url ?? [])]).map(checkUrl);
  if (urls.length === 0) throw badOptions("url names no gateway");
  checkSettings(settings);
  if (first !== undefined && !urls[first]) throw badOptions(`first is ${first}, and url names ${urls.length}`);
  return new Client(settings, urls, first ?? (hash32(settings.account) >>> 0) % urls.length);
}

/** @param {string} url */
function checkUrl(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    throw badOptions(`${url} is no address; it looks like ws://host:port`);
  }
  const fine = parsed.protocol === "ws:" || parsed.protocol === "wss:";
  if (!fine) throw badOptions(`${url} begins with neither ws:// nor wss://`);
  return parsed.href;
}

/** @param {Settings} settings */
function checkSettings(settings) {
  const { account, version, token, queueToken } = settings;
  const bytes = typeof account === "string" ? utf8Encoder.encode(account).length : 0;
  if (bytes < 1 || bytes > 128 || /[\p{Cc}\p{Surrogate}]/u.test(account)) {
    throw badOptions("account must have 1 to 128 bytes without control characters");
  }
  if (version !== "") {
    const parts = String(version).split(".");
    const fine = parts.length === 4 && parts.every((part) => /^\d{1,5}$/.test(part) && Number(part) <= 65_535);
    if (!fine) throw badOptions(`version ${version} is not of the form a.b.c.d`);
  }
  const proof = typeof token === "string" || typeof token === "function";
  if (!proof) throw badOptions("token must be a string or a function");
  if (!(queueToken instanceof Uint8Array)) throw badOptions("queueToken must be a Uint8Array");
  if (typeof settings.WebSocket !== "function") {
    throw badOptions("this runtime has no WebSocket; use Node 22, or give one as the option WebSocket");
  }
  for (const [key, least] of Object.entries(NUMBERS)) {
    const value = settings[/** @type {keyof typeof NUMBERS} */ (key)];
    if (!Number.isInteger(value) || value < least || value > 2 ** 31 - 1) {
      throw badOptions(`${key} is ${value}, and must be a whole number from ${least}`);
    }
  }
}

const NUMBERS = Object.freeze({
  ...{ triesMax: 0, firstWaitMs: 1, waitMaxMs: 1, stableMs: 0, connectTimeoutMs: 1, timeoutMs: 1, keepAliveMs: 1 },
  ...{ inFlightMax: 1, outBytesMax: 1, payloadBytesMax: 1 },
});

/** One player's connection to the cluster. Made by {@link connect}. */
export class Client {
  #settings;
  #urls;
  #at;
  /** @type {StateEvent} */
  #state;
  /** @type {Connection | null} */
  #connection = null;
  /** @type {Map<string, Set<(event: any) => void>>} */
  #handlers = new Map();
  /** @type {(value: null) => void} */
  #end = () => {};
  /** Ends a wait early: by `close()`, or because the network is back. */
  #wake = () => {};
  #closing = false;
  /** Resolves when `close()` is called. */
  #closed = new Promise((resolve) => (this.#end = resolve));
  /** @type {Stats} */
  #stats = { pushes: 0, ignored: 0, lateReplies: 0, unexpected: 0, badPushes: 0, reconnects: 0 };

  /** Use {@link connect}. @param {Settings} settings @param {string[]} urls @param {number} first */
  constructor(settings, urls, first) {
    this.#settings = settings;
    this.#urls = urls;
    this.#at = first;
    this.#state = this.#event("connecting");
    const online = () => this.#wake();
    globalThis.addEventListener?.("online", online);
    // It begins after whoever called has put handlers on it.
    queueMicrotask(async () => {
      const end = this.#closing ? BY_US : await this.#keep();
      globalThis.removeEventListener?.("online", online);
      this.#change("closed", { cause: end });
      this.#emit("closed", end);
    });
  }

  /** Whose connection this is. */
  get account() {
    return this.#settings.account;
  }

  /** @returns {StateEvent["state"]} */
  get state() {
    return this.#state.state;
  }

  /** The gateway in use, or the one that is dialled. */
  get url() {
    return this.#urls[this.#at];
  }

  /** Why it is closed for good, once it is. */
  get closed() {
    return this.state === "closed" ? this.#state.cause : null;
  }

  /** @returns {Readonly<Stats>} */
  get stats() {
    return { ...this.#stats };
  }

  /**
   * Resolves when the client is open, at once if it is. Rejects with `closed` when it closes instead.
   * @returns {Promise<void>}
   */
  ready() {
    return new Promise((resolve, reject) => {
      const settled = () => {
        if (this.state === "open") resolve();
        else if (this.state === "closed") reject(this.#closedError());
        return this.state === "open" || this.state === "closed";
      };
      if (settled()) return;
      const off = this.on("state", () => settled() && off());
    });
  }

  /**
   * Asks and waits for the answer. Exactly one outcome: the reply, or a rejection with a {@link LinksteadError}.
   * Nothing is sent twice. A request while there is no connection is `not_connected`.
   *
   * @template Q, A
   * @param {Rpc<Q, A>} protocol
   * @param {Input<Q>} [message]
   * @param {{ timeoutMs?: number }} [options]
   * @returns {Promise<A>}
   */
  async request(protocol, message, { timeoutMs = this.#settings.timeoutMs } = {}) {
    if (!protocol?.request) throw badMessage(protocol?.name ?? "this", "is not a request; see `send` and `on`");
    if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > 2 ** 31 - 1) {
      throw badMessage(`${protocol.name}: timeoutMs`, "must be a whole number of milliseconds from 1");
    }
    const body = encodeMessage(protocol.request, message ?? /** @type {Input<Q>} */ ({}));
    const answer = await this.#open().request(protocol, body, timeoutMs);
    return protocol.reply ? decodeMessage(protocol.reply, answer) : /** @type {A} */ (undefined);
  }

  /**
   * Sends a message that nobody answers. That it returns means that it waits to be sent, no more.
   * @template Q
   * @param {Notify<Q>} protocol
   * @param {Input<Q>} [message]
   * @throws {LinksteadError} when it was not sent
   */
  send(protocol, message) {
    if (!protocol?.notify) throw badMessage(protocol?.name ?? "this", "is not a one-way message; see `request`");
    const body = encodeMessage(protocol.notify, message ?? /** @type {Input<Q>} */ ({}));
    this.#open().send(encodeFrame(protocol, ONE_WAY, 0n, body));
  }

  /**
   * Calls `handler` for each push of a protocol, or for each event of a name: `state`, `closed`, `report`, `error`.
   * Handlers are called in the order of arrival. One that throws ends nothing: it is reported as an `error` event, or
   * to the page's own error handler when nobody listens to that.
   *
   * @template T
   * @template {keyof Events} N
   * @overload
   * @param {N} what
   * @param {(event: Events[N]) => void} handler
   * @returns {() => void} takes the handler off again
   */
  /**
   * @template T
   * @overload
   * @param {Push<T>} what
   * @param {(message: T) => void} handler
   * @returns {() => void} takes the handler off again
   */
  /**
   * @param {string | Push} what
   * @param {(event: any) => void} handler
   * @returns {() => void}
   */
  on(what, handler) {
    const name = typeof what === "string" ? what : what?.push && `${what.module}:${what.protocol}`;
    if (!name || (typeof what === "string" && !EVENTS.includes(what))) {
      throw new LinksteadError("bad_options", `there is no event ${String(what)}; events are ${EVENTS.join(", ")}`);
    }
    let known = this.#handlers.get(name);
    if (!known) this.#handlers.set(name, (known = new Set()));
    // Each call of `on` is an entry of its own, even with the same function.
    const entry = (/** @type {any} */ event) => handler(event);
    known.add(entry);
    if (typeof what !== "string") this.#pushes.set(name, what);
    return () => void known.delete(entry);
  }

  /** What the pushes that have handlers look like. @type {Map<string, Push>} */
  #pushes = new Map();

  /** Closes for good. Requests in flight are `lost`. What was sent before still leaves. */
  close() {
    this.#closing = true;
    this.#end(null);
    this.#wake();
    this.#connection?.end(BY_US);
  }

  /** @returns {Connection} */
  #open() {
    if (this.state === "closed") throw this.#closedError();
    if (this.state !== "open" || !this.#connection) throw notConnected();
    return this.#connection;
  }

  #closedError() {
    const { text = "", code = 0, name = "" } = this.#state.cause ?? {};
    return new LinksteadError("closed", `the connection is closed: ${text}`, {
      ...{ code, codeName: name, cause: this.#state.cause },
    });
  }

  /** Connects, and again whenever the connection is lost, until nothing helps. @returns {Promise<Cause>} */
  async #keep() {
    const { reconnect, triesMax, firstWaitMs, waitMaxMs, stableMs } = this.#settings;
    let [wasOpen, tries, bound] = [false, 0, firstWaitMs];
    for (;;) {
      tries++;
      const { why, openMs } = await this.#dial(wasOpen, tries);
      if (this.#closing) return BY_US;
      if (openMs !== null) wasOpen = true;
      if (why.retry === "never" || (wasOpen && !reconnect)) return why;
      if (!wasOpen && tries >= this.#urls.length) return why;
      // Only a connection that lasted makes the waits short again: one that is dropped at once must not be a loop.
      if (openMs !== null && openMs >= stableMs) [tries, bound] = [0, firstWaitMs];
      if (wasOpen && triesMax > 0 && tries >= triesMax) return why;
      this.#at = (this.#at + 1) % this.#urls.length;
      if (!wasOpen) continue;
      // Drawn at random, so that a thousand clients don't come back at one instant.
      const waitMs = Math.max(why.retryAfterMs, tries === 0 ? 0 : bound / 2) + (Math.random() * bound) / 2;
      if (tries > 0) bound = Math.min(bound * 2, Math.max(waitMaxMs, firstWaitMs));
      this.#change("reconnecting", { cause: why, tries, waitMs: Math.round(waitMs) });
      await this.#sleep(waitMs);
      // Without a network no dial can succeed, so none is counted; the browser says when it is back.
      while (globalThis.navigator?.onLine === false && !this.#closing) await this.#sleep(waitMaxMs);
      if (this.#closing) return BY_US;
    }
  }

  /**
   * One connection from its dial to its end, and how long it was open; null if it never was.
   * @type {(wasOpen: boolean, tries: number) => Promise<{ why: Cause, openMs: number | null }>}
   */
  async #dial(wasOpen, tries) {
    const token = await this.#token();
    if (this.#closing) return { why: BY_US, openMs: null };
    if (typeof token !== "string") return { why: token, openMs: null };
    return new Promise((resolve) => {
      /** @type {number | null} */
      let openAt = null;
      const hooks = {
        opened: () => {
          openAt = performance.now();
          if (wasOpen) this.#stats.reconnects++;
          this.#change("open", { reconnected: wasOpen, tries });
        },
        push: (/** @type {TypeId} */ type, /** @type {Uint8Array} */ body) => this.#pushed(type, body),
        report: (/** @type {Report} */ report) => this.#emit("report", report),
        ended: (/** @type {Cause} */ why) => {
          this.#connection = null;
          resolve({ why, openMs: openAt === null ? null : performance.now() - openAt });
        },
      };
      try {
        this.#connection = new Connection(this.#settings, this.url, this.#stats, hooks);
        this.#connection.logIn(token);
      } catch (error) {
        // A page that came by https may not dial ws://, for one.
        const text = `${this.url} can't be dialled: ${error instanceof Error ? error.message : error}`;
        resolve({ why: cause("unreachable", text, "never"), openMs: null });
      }
    });
  }

  /** A token for one dial, or why there is none. @returns {Promise<string | Cause>} */
  async #token() {
    const { token, connectTimeoutMs } = this.#settings;
    if (typeof token === "string") return token;
    let timer;
    const late = new Promise((_, reject) => {
      const text = `token() took longer than ${connectTimeoutMs} ms`;
      timer = setTimeout(() => reject(new Error(text)), connectTimeoutMs);
    });
    try {
      const given = await Promise.race([token(), late, this.#closed]);
      if (typeof given === "string") return given;
      return cause("no_token", "token() has no token for this account", "never");
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      return cause("no_token", `there is no token: ${text}`, "after", { retryAfterMs: 1000 });
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {number} ms @returns {Promise<void>} */
  #sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** @type {(state: StateEvent["state"], more?: Partial<StateEvent>) => StateEvent} */
  #event(state, more) {
    return { state, url: this.url, reconnected: false, tries: 0, waitMs: 0, cause: null, ...more };
  }

  /** @type {(state: StateEvent["state"], more?: Partial<StateEvent>) => void} */
  #change(state, more) {
    this.#state = this.#event(state, more);
    this.#emit("state", this.#state);
  }

  /** @type {(type: TypeId, body: Uint8Array) => void} */
  #pushed({ module, protocol }, body) {
    this.#stats.pushes++;
    const name = `${module}:${protocol}`;
    const type = this.#pushes.get(name)?.push;
    if (!type || !this.#handlers.get(name)?.size) return void this.#stats.ignored++;
    let message;
    try {
      message = decodeMessage(type, body);
    } catch (error) {
      this.#stats.badPushes++;
      const text = error instanceof Error ? error.message : String(error);
      return this.#fault(new LinksteadError("bad_push", text, { cause: error }));
    }
    this.#emit(name, message);
  }

  /** @type {(name: string, event: any) => void} */
  #emit(name, event) {
    for (const handler of [...(this.#handlers.get(name) ?? [])]) {
      try {
        handler(event);
      } catch (error) {
        const text = `a handler of ${this.#pushes.get(name)?.name ?? name} failed: ${error}`;
        const fault = new LinksteadError("handler", text, { cause: error });
        if (name === "error") report(fault);
        else this.#fault(fault);
      }
    }
  }

  /** @param {LinksteadError} error */
  #fault(error) {
    if (this.#handlers.get("error")?.size) this.#emit("error", error);
    else report(error);
  }
}

const EVENTS = ["state", "closed", "report", "error"];
const BY_US = Object.freeze(cause("by_us", "closed by us", "never"));

/** To whoever watches over the page. @param {LinksteadError} error */
function report(error) {
  if (typeof globalThis.reportError === "function") globalThis.reportError(error);
  else console.error(error);
}

/** The number of a protocol, from its name `Module.handler`. @param {string} name @returns {number} */
export function hash32(name) {
  let hash = 3074457345618258791n;
  for (let i = 0; i < name.length; i++) {
    hash = BigInt.asUintN(64, (hash + BigInt(name.charCodeAt(i))) * 3074457345618258799n);
  }
  return Number(BigInt.asIntN(32, hash ^ BigInt.asUintN(64, BigInt.asIntN(64, hash) >> 32n)));
}

/** The wire itself, for tests and tools. A game has no use for it. */
export const wire = Object.freeze({
  ...{ Reader, Writer, Inbox, BadBytes, encodeFrame, decodePayload, encodeTagged, decodeTagged, decodeReport, refusal },
  ...{ AUTH, KEEP_ALIVE, REPORT_ERROR, REQUEST, RESPONSE, ONE_WAY, HEADER_BYTES, PAYLOAD_BYTES_CEILING },
});
