// @ts-check
/** The client against gateways that a test holds in its hand: outcomes, bounds, reconnects, bad bytes. */

import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { connect, decodeMessage, encodeMessage, hash32, wire } from "../linkstead.js";
import { Guests, Rooms, Tavern, messages } from "../../../examples/tavern/web/tavern.js";
import { Gateways, failure, next } from "./double.js";

const [ONE, TWO] = ["ws://one:1/", "ws://two:2/"];

/** @type {import("../linkstead.js").Client[]} */
const clients = [];
// An open client keeps its process alive.
afterEach(() => clients.splice(0).forEach((client) => client.close()));

/** @param {Gateways} gateways @param {any} [more] */
function dial(gateways, more = {}) {
  const options = { url: [ONE, TWO], first: 0, account: "ann", WebSocket: gateways.WebSocket, firstWaitMs: 2, ...more };
  clients.push(connect(options));
  return /** @type {import("../linkstead.js").Client} */ (clients.at(-1));
}

/** A client that is in, and its far end. @param {any} [more] */
async function open(more) {
  const gateways = new Gateways();
  const client = dial(gateways, more);
  const far = await gateways.next();
  const auth = await far.letIn();
  await client.ready();
  return { gateways, client, far, auth };
}

/** @param {any} far @param {any} type @param {any} shape @param {any} message */
const push = (far, type, shape, message) => far.push(type, encodeMessage(shape, message));

const SAY = { room: "attic", text: "hello" };

describe("a login", () => {
  it("is the ancestor's Auth, and the client is open with its answer", async () => {
    const { client, auth } = await open({ token: "t", version: "1.2.3.4" });
    assert.deepEqual([auth.module, auth.protocol, auth.family], [10000, -997899722, wire.REQUEST]);
    const text = [...wire.decodeTagged(auth.body)].map(([id, value]) => [id, Buffer.from(/** @type {any} */ (value)).toString()]);
    assert.deepEqual(text, [[1, "ann"], [2, "t"], [3, "1.2.3.4"]]);
    assert.deepEqual([client.state, client.url, client.account], ["open", ONE, "ann"]);
  });

  it("that is refused closes with code and name, and is not tried again", async () => {
    const gateways = new Gateways();
    const client = dial(gateways);
    const closed = next(client, "closed");
    const ready = failure(client.ready());
    const far = await gateways.next();
    far.answer(await far.next(), new Uint8Array(1), -207n);
    const { kind, code, name, retry } = await closed;
    assert.deepEqual([kind, code, name, retry], ["refused", 107, "AUTH_REFUSED", "never"]);
    assert.deepEqual([(await ready).kind, (await ready).codeName], ["closed", "AUTH_REFUSED"]);
    assert.deepEqual(gateways.dials, [ONE]);
  });

  // Holds: Q42.
  it("tries each address once at first, and says when none is there", async () => {
    const gateways = new Gateways();
    gateways.down = new Set([ONE, TWO]);
    const client = dial(gateways);
    const closed = await next(client, "closed");
    assert.equal(closed.kind, "unreachable");
    assert.match(closed.text, /two:2/);
    assert.deepEqual(gateways.dials, [ONE, TWO]);
  });

  it("takes a fresh token for each dial, and none at all closes", async () => {
    const tokens = ["a", "b", null];
    const { gateways, client, far, auth } = await open({ token: async () => tokens.shift() });
    const token = (/** @type {any} */ frame) => Buffer.from(/** @type {any} */ (wire.decodeTagged(frame.body).get(2))).toString();
    assert.equal(token(auth), "a");
    far.close(1006);
    const second = await gateways.next();
    assert.equal(token(await second.letIn()), "b");
    const closed = next(client, "closed");
    await client.ready();
    second.close(1006);
    assert.deepEqual([(await closed).kind, (await closed).retry], ["no_token", "never"]);
    assert.equal(gateways.dials.length, 2);
  });

  it("asks for the token again later when that failed", async () => {
    let asked = 0;
    const token = () => {
      if (++asked === 2) throw new Error("the shop is closed");
      return `t${asked}`;
    };
    const { gateways, client, far } = await open({ token });
    far.close(1006);
    const waiting = await next(client, "state", (event) => event.cause?.kind === "no_token");
    assert.match(waiting.cause.text, /the shop is closed/);
    assert.ok(waiting.waitMs >= 1000, "it says to wait");
    client.close();
    assert.deepEqual([client.url, gateways.dials.length], [ONE, 1]);
  });

  it("that is never answered is given up", async () => {
    const gateways = new Gateways();
    const client = dial(gateways, { url: ONE, connectTimeoutMs: 5 });
    assert.equal((await next(client, "closed")).kind, "connect_timeout");
    assert.equal(gateways.closedByClient.length, 1);
  });
});

describe("a request has one outcome", () => {
  it("its answer", async () => {
    const { client, far } = await open();
    const heard = client.request(Rooms.say, SAY);
    const request = await far.next();
    assert.deepEqual([request.module, request.protocol], [2, -1890124873]);
    assert.deepEqual(decodeMessage(messages.Say, request.body), SAY);
    far.answer(request, encodeMessage(messages.Heard, { by: 3 }));
    assert.deepEqual(await heard, { by: 3 });
  });

  it("nothing, when the handler answers with nothing", async () => {
    const { client, far } = await open();
    const left = client.request(Rooms.leave, { room: "attic" });
    far.answer(await far.next());
    assert.equal(await left, undefined);
  });

  it("the framework's refusal, by code and name", async () => {
    const { client, far } = await open();
    const refused = failure(client.request(Rooms.say, SAY));
    far.answer(await far.next(), new Uint8Array(1), -19n);
    const { kind, code, codeName, retry, retryAfterMs, game } = await refused;
    assert.deepEqual([kind, code, codeName, retry, retryAfterMs, game], ["refused", -19, "BUSY", "after", 200, undefined]);
  });

  it("the game's refusal, by module and code", async () => {
    const { client, far } = await open();
    const refused = failure(client.request(Rooms.say, SAY));
    far.answer(await far.next(), new Uint8Array(1), (2n << 32n) | 3n);
    const { kind, game, codeName, retry } = await refused;
    assert.deepEqual([kind, game, codeName, retry], ["refused", { module: 2, code: 3 }, "", "never"]);
  });

  it("its deadline, and a late answer is counted and changes nothing", async () => {
    const { client, far } = await open();
    const late = failure(client.request(Rooms.say, SAY, { timeoutMs: 1 }));
    const request = await far.next();
    assert.deepEqual([(await late).kind, (await late).retry], ["timeout", "unknown"]);
    far.answer(request);
    const who = client.request(Rooms.who, { room: "attic" });
    far.answer(await far.next(), encodeMessage(messages.Members, { members: ["ann"] }));
    assert.deepEqual(await who, { members: ["ann"] });
    assert.equal(client.stats.lateReplies, 1);
  });

  it("the end of the connection, which says that the outcome is unknown", async () => {
    const { client, far } = await open();
    const lost = failure(client.request(Rooms.say, SAY));
    await far.next();
    far.close(1006);
    assert.deepEqual([(await lost).kind, (await lost).retry], ["lost", "unknown"]);
    assert.match((await lost).message, /the outcome is unknown/);
    client.close();
  });

  // Holds: Q74.
  it("never the answer to another protocol or of another connection", async () => {
    const { gateways, client, far } = await open();
    const heard = client.request(Rooms.say, SAY);
    const request = await far.next();
    far.answer({ ...request, protocol: request.protocol + 1 }, encodeMessage(messages.Heard, { by: 66 }));
    far.answer(request, encodeMessage(messages.Heard, { by: 1 }));
    assert.deepEqual(await heard, { by: 1 });
    far.close(1006);
    const second = await gateways.next();
    await second.letIn();
    await client.ready();
    const again = client.request(Rooms.say, SAY);
    const asked = await second.next();
    far.answer(asked, encodeMessage(messages.Heard, { by: 66 }));
    second.answer(asked, encodeMessage(messages.Heard, { by: 2 }));
    assert.deepEqual(await again, { by: 2 });
    assert.equal(client.stats.lateReplies, 1);
  });

  it("an answer that can't be read", async () => {
    const { client, far } = await open();
    const bad = failure(client.request(Rooms.say, SAY));
    far.answer(await far.next(), new Uint8Array([0x08]));
    assert.deepEqual([(await bad).kind, (await bad).retry], ["bad_reply", "unknown"]);
    assert.equal(client.state, "open");
  });
});

describe("what is not sent is said to be not sent", () => {
  it("while there is no connection", async () => {
    const gateways = new Gateways();
    const client = dial(gateways);
    const early = await failure(client.request(Rooms.say, SAY));
    assert.deepEqual([early.kind, early.retry], ["not_connected", "after"]);
    client.close();
    await next(client, "closed");
    assert.equal((await failure(client.request(Rooms.say, SAY))).kind, "closed");
  });

  it("into a socket that is closing", async () => {
    const { client, far } = await open();
    far.socket.readyState = 2;
    assert.equal((await failure(client.request(Rooms.say, SAY))).kind, "not_connected");
    client.close();
  });

  it("beyond the bounds of requests, bytes and one message", async () => {
    const { client, far } = await open({ inFlightMax: 2, outBytesMax: 1000 });
    const waiting = [client.request(Rooms.say, SAY), client.request(Rooms.say, SAY)];
    assert.equal((await failure(client.request(Rooms.say, SAY))).kind, "busy");
    for (const one of waiting) {
      far.answer(await far.next());
      await one;
    }
    far.socket.bufferedAmount = 990;
    const busy = await failure(client.request(Rooms.say, SAY));
    assert.deepEqual([busy.kind, busy.retry], ["busy", "after"]);
    far.socket.bufferedAmount = 0;
    const large = await failure(client.request(Rooms.say, { room: "attic", text: "x".repeat(70_000) }));
    assert.equal(large.kind, "too_large");
    assert.deepEqual(far.frames, []);
  });

  it("when the message is wrong, naming the field", async () => {
    const { client, far } = await open();
    const wrong = async (/** @type {any} */ message) => (await failure(client.request(Rooms.say, message))).message;
    assert.match(await wrong({ rom: "attic" }), /tavern\.Say has no field rom; it has room, text/);
    assert.match(await wrong({ room: 7 }), /tavern\.Say\.room must be a string/);
    assert.match(await wrong([]), /must be an object/);
    assert.throws(() => client.send(/** @type {any} */ (Rooms.say), SAY), { kind: "bad_message" });
    assert.equal((await failure(client.request(/** @type {any} */ (Rooms.Said)))).kind, "bad_message");
    assert.deepEqual(far.frames, []);
  });

  it("when the options are wrong, before anything is dialled", () => {
    const gateways = new Gateways();
    for (const [options, words] of /** @type {[any, RegExp][]} */ ([
      [{ url: [] }, /names no gateway/],
      [{ url: "one:1" }, /neither ws/],
      [{ url: "no address" }, /no address/],
      [{ account: "" }, /1 to 128 bytes/],
      [{ account: "é".repeat(65) }, /1 to 128 bytes/],
      [{ account: "a\nb" }, /control characters/],
      [{ version: "1.2" }, /a\.b\.c\.d/],
      [{ version: "1.2.3.70000" }, /a\.b\.c\.d/],
      [{ timeoutMs: 0 }, /timeoutMs/],
      [{ inFlightMax: 1.5 }, /inFlightMax/],
      [{ tokn: "x" }, /no option tokn/],
      [{ token: 5 }, /token/],
      [{ WebSocket: null }, /no WebSocket/],
    ])) {
      assert.throws(() => dial(gateways, options), (/** @type {any} */ error) => error.kind === "bad_options" && words.test(error.message));
    }
    assert.deepEqual(gateways.dials, []);
  });
});

describe("pushes and reports", () => {
  it("reach their handlers in the order of arrival, and a handler can be taken off", async () => {
    const { client, far } = await open();
    /** @type {string[]} */
    const heard = [];
    const off = client.on(Rooms.Said, (said) => heard.push(said.text));
    client.on(Rooms.Joined, (joined) => heard.push(`+${joined.account}`));
    push(far, Rooms.Said, messages.Said, { text: "one" });
    push(far, Rooms.Joined, messages.Joined, { account: "bob" });
    push(far, Rooms.Said, messages.Said, { text: "two" });
    push(far, Guests.Whispered, messages.Whispered, { text: "nobody listens" });
    push(far, Tavern.Announced, messages.Announced, { text: "nor here" });
    const done = next(client, Rooms.Left);
    push(far, Rooms.Left, messages.Left, {});
    await done;
    off();
    push(far, Rooms.Said, messages.Said, { text: "three" });
    const then = next(client, Rooms.Left);
    push(far, Rooms.Left, messages.Left, {});
    await then;
    assert.deepEqual(heard, ["one", "+bob", "two"]);
    assert.deepEqual([client.stats.pushes, client.stats.ignored], [8, 3]);
  });

  // Holds: Q71.
  it("one that fails in its handler is an error event, and the others are called", async () => {
    const { client, far } = await open();
    const error = next(client, "error");
    client.on(Rooms.Said, () => {
      throw new Error("oh");
    });
    const other = next(client, Rooms.Said);
    push(far, Rooms.Said, messages.Said, { text: "x" });
    assert.equal((await other).text, "x");
    assert.deepEqual([(await error).kind, (await error).cause.message], ["handler", "oh"]);
    assert.equal(client.state, "open");
  });

  it("one that can't be read is an error event, and the connection lives", async () => {
    const { client, far } = await open();
    client.on(Rooms.Said, () => {});
    const error = next(client, "error");
    far.push(Rooms.Said, new Uint8Array([0x0a, 0x05, 0x41]));
    assert.deepEqual([(await error).kind, client.stats.badPushes, client.state], ["bad_push", 1, "open"]);
  });

  it("a report alone ends nothing", async () => {
    const { client, far } = await open();
    const report = next(client, "report");
    far.report(0, 4, "");
    assert.deepEqual([(await report).code, (await report).name, client.state], [4, "PROVIDER_BROKEN", "open"]);
    client.close();
  });

  // Holds: Q71.
  it("keep-alives of the server are answered, other requests refused", async () => {
    const { client, far } = await open();
    far.say(wire.encodeFrame(wire.KEEP_ALIVE, wire.REQUEST, 77n, new Uint8Array(1)));
    const alive = await far.next();
    assert.deepEqual([alive.family, alive.session, alive.code], [wire.RESPONSE, 77n, 0n]);
    far.say(wire.encodeFrame({ module: 2, protocol: 9 }, wire.REQUEST, 78n, new Uint8Array(1)));
    assert.equal((await far.next()).code, -231n);
    assert.equal(client.stats.unexpected, 1);
  });
});

describe("a lost connection", () => {
  // Holds: Q42.
  it("is dialled again at the next address, and pushes go on", async () => {
    const { gateways, client, far } = await open();
    const lost = next(client, "state", (event) => event.state === "reconnecting");
    const again = next(client, "state", (event) => event.state === "open");
    const said = next(client, Rooms.Said);
    far.close(1006);
    assert.deepEqual([(await lost).cause.kind, (await lost).url], ["broken", TWO]);
    const second = await gateways.next();
    await second.letIn();
    assert.deepEqual([(await again).reconnected, (await again).url, client.stats.reconnects], [true, TWO, 1]);
    push(second, Rooms.Said, messages.Said, { text: "still here" });
    assert.equal((await said).text, "still here");
    assert.deepEqual(gateways.dials, [ONE, TWO]);
  });

  it("goes on to an address that is there", async () => {
    const { gateways, client, far } = await open();
    gateways.down.add(TWO);
    far.close(1006);
    const third = await gateways.next();
    await third.letIn();
    await client.ready();
    assert.deepEqual(gateways.dials, [ONE, TWO, ONE]);
  });

  it("waits longer each time, draws the waits at random, and gives up at the bound", async () => {
    const { gateways, client, far } = await open({ triesMax: 5, firstWaitMs: 1, waitMaxMs: 4, stableMs: 0 });
    gateways.down = new Set([ONE, TWO]);
    /** @type {number[]} */
    const tries = [];
    client.on("state", (event) => event.state === "reconnecting" && tries.push(event.tries));
    // The network says each time that it is back, which ends the wait.
    client.on("state", (event) => event.state === "reconnecting" && queueMicrotask(online));
    const online = () => listeners.forEach((listener) => listener());
    far.close(1006);
    const closed = await next(client, "closed");
    assert.equal(closed.kind, "unreachable");
    assert.deepEqual([tries, gateways.dials.length], [[0, 1, 2, 3, 4], 6]);
    const late = await failure(client.ready());
    assert.equal(late.kind, "closed");
  });

  it("is not dialled while the machine has no network", async () => {
    const { gateways, client, far } = await open({ waitMaxMs: 1, triesMax: 2 });
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    let looked = 0;
    // The fifth look finds the network back.
    const navigator = { get onLine() { return ++looked > 4; } };
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
    far.close(1006);
    const second = await gateways.next();
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete (/** @type {any} */ (globalThis).navigator);
    await second.letIn();
    await client.ready();
    assert.deepEqual([looked, gateways.dials], [5, [ONE, TWO]]);
  });

  it("that never lasts does not become a loop", async () => {
    const { gateways, client, far } = await open({ triesMax: 4, firstWaitMs: 1, waitMaxMs: 2 });
    const closed = next(client, "closed");
    far.report(0, 114, "SHUTTING_DOWN");
    far.close(1000);
    for (let i = 0; i < 3; i++) {
      const again = await gateways.next();
      await again.letIn();
      again.report(0, 114, "SHUTTING_DOWN");
      again.close(1000);
    }
    assert.deepEqual([(await closed).kind, (await closed).name], ["reported", "SHUTTING_DOWN"]);
    assert.equal(gateways.dials.length, 4);
  });

  it("of a player who was kicked stays lost", async () => {
    for (const [from, code, name] of /** @type {const} */ ([[0, 118, "KICKED"], [1, 118, "KICKED"], [1, 9, ""]])) {
      const { gateways, client, far } = await open();
      const closed = next(client, "closed");
      far.report(from, code, "the keeper has shown you out");
      far.close(1000);
      const cause = await closed;
      assert.deepEqual([cause.kind, cause.code, cause.name, cause.retry], ["reported", code, name, "never"]);
      if (!name) assert.match(cause.text, /the keeper has shown you out/);
      assert.equal(gateways.dials.length, 1);
    }
  });

  it("stays lost without `reconnect`", async () => {
    const { gateways, client, far } = await open({ reconnect: false });
    const closed = next(client, "closed");
    far.close(1006);
    assert.deepEqual([(await closed).kind, gateways.dials.length], ["broken", 1]);
  });

  // Holds: Q42.
  it("is noticed by silence", async () => {
    const { gateways, client, far } = await open({ keepAliveMs: 2 });
    const lost = next(client, "state", (event) => event.state === "reconnecting");
    const asked = await far.next();
    assert.deepEqual([asked.module, asked.protocol, asked.family], [0, -183352608, wire.REQUEST]);
    far.answer(asked, new Uint8Array(1));
    assert.equal((await far.next()).protocol, -183352608, "answered, so it lives and is asked again");
    assert.equal((await lost).cause.kind, "silent");
    assert.deepEqual(gateways.closedByClient, [far.socket]);
    client.close();
  });

  it("speaks to nobody any more", async () => {
    const { gateways, client, far } = await open();
    client.on(Rooms.Said, () => assert.fail("a push of the old connection"));
    far.close(1006);
    push(far, Rooms.Said, messages.Said, { text: "from the grave" });
    const second = await gateways.next();
    await second.letIn();
    await client.ready();
    assert.equal(client.stats.pushes, 0);
  });
});

describe("close", () => {
  it("ends requests and is the last event, whatever the client was doing", async () => {
    for (const moment of ["dialling", "token", "open", "waiting"]) {
      const gateways = new Gateways();
      const token = moment === "token" ? () => new Promise(() => {}) : "";
      const client = dial(gateways, { token, firstWaitMs: 60_000 });
      /** @type {string[]} */
      const states = [];
      client.on("state", (event) => states.push(event.state));
      if (moment === "dialling" || moment === "token") await Promise.resolve();
      else await (await gateways.next()).letIn().then(() => client.ready());
      let lost;
      if (moment === "open") lost = failure(client.request(Rooms.say, SAY));
      if (moment === "waiting") {
        const waiting = next(client, "state");
        gateways.dials.length = 0;
        /** @type {any} */ (await lastFar(gateways)).close(1006);
        await waiting;
      }
      const closed = next(client, "closed");
      client.close();
      client.close();
      assert.equal((await closed).kind, "by_us", moment);
      if (lost) assert.equal((await lost).kind, "lost");
      assert.equal(states.at(-1), "closed");
      assert.equal(client.closed?.kind, "by_us");
    }
  });

  it("from inside a handler stops the rest of what came with it", async () => {
    const { client, far } = await open();
    /** @type {string[]} */
    const heard = [];
    client.on(Rooms.Said, (said) => {
      heard.push(said.text);
      client.close();
    });
    const frame = (/** @type {string} */ text) => wire.encodeFrame(Rooms.Said, wire.ONE_WAY, 0n, encodeMessage(messages.Said, { text }));
    far.say(Buffer.concat([frame("one"), frame("two")]));
    await next(client, "closed");
    assert.deepEqual(heard, ["one"]);
  });
});

describe("bytes of a stranger", () => {
  // Holds: Q71.
  it("close with a clear error and are not dialled again", async () => {
    for (const [bytes, words] of /** @type {[number[], RegExp][]} */ ([
      [[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], /no payload/],
      [[1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], /4294967295 payload bytes/],
      [[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9], /no family/],
      [[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], /too early/],
      [[0x48, 0x54, 0x54, 0x50, 0x2f, 0x31, 0x2e, 0x31, 0x20, 0x34, 0x30, 0x30], /payload bytes/],
    ])) {
      const { gateways, client, far } = await open();
      const closed = next(client, "closed");
      far.say(new Uint8Array(bytes));
      const { kind, text, retry } = await closed;
      assert.deepEqual([kind, retry, gateways.dials.length], ["bad_bytes", "never", 1]);
      assert.match(text, words);
    }
    const { client, far } = await open();
    const closed = next(client, "closed");
    far.socket.later(() => far.socket.onmessage({ data: "text" }));
    assert.equal((await closed).kind, "bad_bytes");
  });

  // Holds: Q71.
  it("are read the same however they are split", async () => {
    const { client, far } = await open();
    /** @type {string[]} */
    const heard = [];
    client.on(Rooms.Said, (said) => heard.push(said.text));
    const frame = wire.encodeFrame(Rooms.Said, wire.ONE_WAY, 0n, encodeMessage(messages.Said, { text: "whole" }));
    for (let cut = 1; cut < frame.length; cut++) {
      far.say(frame.subarray(0, cut));
      far.say(frame.subarray(cut));
    }
    far.say(Buffer.concat([frame, frame, frame.subarray(0, 5)]));
    for (const byte of frame.subarray(5)) far.say(new Uint8Array([byte]));
    const done = next(client, Rooms.Left);
    push(far, Rooms.Left, messages.Left, {});
    await done;
    assert.deepEqual(heard, Array(frame.length + 2).fill("whole"));
  });

  // Holds: Q71.
  it("never throw out of the socket's event, whatever they are", async () => {
    const random = lcg(20261130);
    for (let round = 0; round < 300; round++) {
      const { client, far } = await open({ reconnect: false });
      client.on(Rooms.Said, () => {});
      client.on("error", () => {});
      const bytes = Uint8Array.from({ length: random() % 200 }, () => random() & 0xff);
      // Half of the rounds have a header that is right, so that what is behind it is looked at.
      if (round % 2 && bytes.length > 12) {
        const view = new DataView(bytes.buffer);
        const type = [Rooms.Said, wire.REPORT_ERROR, wire.KEEP_ALIVE, wire.AUTH][round % 4];
        view.setInt32(0, type.module, true);
        view.setInt32(4, type.protocol, true);
        view.setUint32(8, bytes.length - 12, true);
        bytes[12] &= 0x23;
      }
      const { onmessage } = far.socket;
      assert.doesNotThrow(() => onmessage({ data: bytes.buffer }), `round ${round}`);
      client.close();
    }
  });
});

it("an account's hash chooses the first address, as for the other clients", async () => {
  assert.equal(hash32("Tavern.login"), 274666913);
  assert.equal(hash32("Guests.whisper"), -985273670);
  const gateways = new Gateways();
  const first = ["ann", "bob", "cid", "dora"].map((account) => {
    const client = connect({ url: [ONE, TWO], account, WebSocket: gateways.WebSocket });
    const url = client.url;
    client.close();
    return url;
  });
  assert.ok(first.includes(ONE) && first.includes(TWO), "players spread");
});

/** @type {(() => void)[]} */
const listeners = [];
globalThis.addEventListener ??= /** @type {any} */ ((/** @type {string} */ _, /** @type {() => void} */ listener) => listeners.push(listener));
globalThis.removeEventListener ??= () => {};

/** @param {Gateways} gateways */
async function lastFar(gateways) {
  return gateways.last;
}

/** Numbers that look random and are the same each time. @param {number} seed */
function lcg(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 8;
  };
}
