// @ts-check
/**
 * A gateway without a network: WebSockets whose far end a test holds in its hand. Events come as they would from a
 * browser, never inside the call that caused them.
 */

import { wire } from "../linkstead.js";

/** A codec's counterpart: what the client sent, and what it shall hear. */
export class Far {
  /** @param {FakeSocket} socket */
  constructor(socket) {
    this.socket = socket;
    this.inbox = new wire.Inbox();
    /** Frames the client sent that no test has taken yet. @type {any[]} */
    this.frames = [];
    /** @type {((frame: any) => void)[]} */
    this.takers = [];
  }

  get url() {
    return this.socket.url;
  }

  /** @param {Uint8Array} bytes */
  heard(bytes) {
    this.inbox.push(bytes.slice());
    for (let frame = this.inbox.next(); frame; frame = this.inbox.next()) {
      const whole = { ...frame, ...wire.decodePayload(frame.payload) };
      const taker = this.takers.shift();
      if (taker) taker(whole);
      else this.frames.push(whole);
    }
  }

  /** The next frame of the client. @returns {Promise<any>} */
  next() {
    const ready = this.frames.shift();
    return ready ? Promise.resolve(ready) : new Promise((resolve) => this.takers.push(resolve));
  }

  /** @param {Uint8Array} bytes */
  say(bytes) {
    this.socket.later(() => this.socket.onmessage?.({ data: Uint8Array.from(bytes).buffer }));
  }

  /** @param {any} request @param {Uint8Array} [body] @param {bigint} [code] */
  answer(request, body = new Uint8Array(0), code = 0n) {
    this.say(wire.encodeFrame(request, wire.RESPONSE, request.session, body, code));
  }

  /** @param {{ module: number, protocol: number }} type @param {Uint8Array} body */
  push(type, body) {
    this.say(wire.encodeFrame(type, wire.ONE_WAY, 0n, body));
  }

  /** @param {number} from @param {number} code @param {string} text */
  report(from, code, text) {
    const out = new wire.Writer();
    if (from) out.bytes([0x10, from]);
    out.u8(from ? 0x10 : 0x20);
    out.long(BigInt(code));
    out.u8(0x13);
    const bytes = new TextEncoder().encode(text);
    out.uint(bytes.length);
    out.bytes(bytes);
    out.u8(0);
    this.push(wire.REPORT_ERROR, out.finish());
  }

  /** @param {number} [code] @param {string} [reason] */
  close(code = 1000, reason = "") {
    this.socket.later(() => this.socket.shut(code, reason));
  }

  /** Takes the login and lets it in. */
  async letIn() {
    const auth = await this.next();
    this.answer(auth, new Uint8Array(1));
    return auth;
  }
}

/** As much of a browser's WebSocket as the client uses. */
export class FakeSocket {
  readyState = 0;
  bufferedAmount = 0;
  binaryType = "blob";
  /** @type {any} */ onopen = null;
  /** @type {any} */ onmessage = null;
  /** @type {any} */ onclose = null;
  /** @type {any} */ onerror = null;

  /** @param {string} url @param {Gateways} gateways */
  constructor(url, gateways) {
    this.url = url;
    this.gateways = gateways;
    this.far = new Far(this);
    gateways.dialled(this);
  }

  /** @param {() => void} event */
  later(event) {
    queueMicrotask(event);
  }

  open() {
    this.later(() => {
      if (this.readyState !== 0) return;
      this.readyState = 1;
      this.onopen?.({});
    });
  }

  /** @param {Uint8Array} bytes */
  send(bytes) {
    if (this.readyState === 0) throw new Error("sent before it was open");
    if (this.readyState === 1) this.far.heard(bytes);
  }

  close() {
    if (this.readyState < 2) {
      this.readyState = 2;
      this.gateways.closedByClient.push(this);
      this.later(() => this.shut(1000, ""));
    }
  }

  /** @param {number} code @param {string} reason */
  shut(code, reason) {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }
}

/** All addresses of a test. */
export class Gateways {
  /** @type {string[]} */
  dials = [];
  /** @type {FakeSocket[]} */
  closedByClient = [];
  /** The far end of the latest dial. @type {Far | undefined} */
  last;
  /** Addresses at which nobody listens. */
  down = new Set();
  /** @type {Far[]} */
  #ready = [];
  /** @type {((far: Far) => void)[]} */
  #takers = [];

  /** The class that a client dials with. @returns {any} */
  get WebSocket() {
    const gateways = this;
    return class extends FakeSocket {
      /** @param {string} url */
      constructor(url) {
        super(url, gateways);
      }
    };
  }

  /** @param {FakeSocket} socket */
  dialled(socket) {
    this.dials.push(socket.url);
    this.last = socket.far;
    if (this.down.has(socket.url)) return socket.later(() => socket.shut(1006, ""));
    socket.open();
    const taker = this.#takers.shift();
    if (taker) taker(socket.far);
    else this.#ready.push(socket.far);
  }

  /** The far end of the next dial. @returns {Promise<Far>} */
  next() {
    const ready = this.#ready.shift();
    return ready ? Promise.resolve(ready) : new Promise((resolve) => this.#takers.push(resolve));
  }
}

/** The next event of a kind. @param {any} client @param {any} what @param {(event: any) => boolean} [fits] @returns {Promise<any>} */
export function next(client, what, fits = () => true) {
  return new Promise((resolve) => {
    const off = client.on(what, (/** @type {any} */ event) => {
      if (!fits(event)) return;
      off();
      resolve(event);
    });
  });
}

/** The error of a promise that must fail. @param {Promise<any>} promise @returns {Promise<any>} */
export function failure(promise) {
  return promise.then(
    (value) => Promise.reject(new Error(`expected an error, not ${JSON.stringify(value)}`)),
    (error) => error,
  );
}
