// @ts-check
/** The tavern in a browser: what a guest does becomes requests, and what the cluster says becomes lines. */

import { connect } from "./linkstead.js";
import { Guests, Rooms, Tavern } from "./tavern.js";
import { Log, at, paint, showBanner, showClosed, showLog, showPeople, showRooms, showState, slide } from "./view.js";
import { inWords, isFinal, isSure, whyClosed, whyLost } from "./words.js";

/** The account that may announce and kick. */
const KEEPER = "keeper";
/** The bound of what may be said, in bytes of UTF-8. */
const TEXT_BYTES_MAX = 500;
/** How often coming in is tried again before it is shown as an error. */
const TRIES_MAX = 20;

/** @typedef {{ name: string, log: Log, members: string[], unread: number }} Room */

/** @type {import("./linkstead.js").Client | null} */
let client = null;
let me = "";
/** @type {Map<string, Room>} */
const rooms = new Map();
let current = "";
/** Who the next words are for; empty is the room. */
let whisperTo = "";
/** Counts the connections, so that what one began is not finished by another. */
let coming = 0;

// ---- the door ----

const remembered = JSON.parse(sessionStorage.getItem("tavern") ?? "null");
const asked = new URLSearchParams(location.search);

function openDoor(/** @type {string} */ error = "") {
  at("tavern").hidden = true;
  at("door").hidden = false;
  at("entry-error").hidden = !error;
  at("entry-error").textContent = error;
  at("enter").disabled = false;
  at("enter").textContent = "Come in";
  document.title = "The Tavern";
  at("name").focus();
}

/**
 * Where the gateways are, and where a ticket is had if they want one; `up` says it.
 * @returns {Promise<{ gateways: string[], ticket?: string }>}
 */
async function cluster() {
  const answer = await fetch("config.json", { cache: "no-store" });
  if (!answer.ok) throw new Error(`config.json: ${answer.status}`);
  return answer.json();
}

/** A ticket is good for one login. @param {string} from @param {string} name */
async function ticketFor(from, name) {
  const answer = await fetch(from, { method: "POST", body: name });
  if (answer.status === 400) return null;
  if (!answer.ok) throw new Error(`${from}: ${answer.status}`);
  return answer.text();
}

/** @param {string} name @param {string[]} first the rooms to enter */
async function enterTavern(name, first) {
  at("entry-error").hidden = true;
  at("enter").disabled = true;
  at("enter").textContent = "Coming in…";
  try {
    const { gateways: url, ticket } = await cluster();
    const token = ticket ? () => ticketFor(ticket, name) : "";
    const wanted = Number(asked.get("gateway")) - 1;
    me = name;
    client = connect({ url, account: name, token, ...(url[wanted] ? { first: wanted } : {}) });
  } catch (error) {
    return openDoor(/** @type {any} */ (error).kind === "bad_options" ? nameError(error) : "This page's server does not answer. Is the cluster up?");
  }
  for (const room of first) rooms.set(room, newRoom(room));
  current = first[0];
  listen(client);
}

/** @param {any} error */
const nameError = (error) => (/account/.test(error.message) ? "That name can't be used. Choose a shorter one." : error.message);

/** @param {string} name @returns {Room} */
const newRoom = (name) => ({ name, log: new Log(name), members: [], unread: 0 });

// ---- the connection ----

/** @param {import("./linkstead.js").Client} client */
function listen(client) {
  client.on("state", changed);
  client.on("closed", closed);
  client.on("report", ({ name }) => {
    // The connection lives, but who served it is gone.
    if (name === "PROVIDER_BROKEN") comeIn(true);
  });
  client.on(Rooms.Said, ({ room, from, text }) => {
    const into = rooms.get(room);
    if (!into) return;
    into.log.spoken({ from, text, at: new Date(), mine: from === me });
    if (room !== current) {
      into.unread++;
      render();
    }
  });
  client.on(Rooms.Joined, ({ room, account }) => moved(room, account, true));
  client.on(Rooms.Left, ({ room, account }) => moved(room, account, false));
  client.on(Guests.Whispered, ({ from, text }) => {
    rooms.get(current)?.log.spoken({ from, text, at: new Date(), mine: false, whisper: "whispers to you" });
  });
  client.on(Tavern.Announced, ({ text }) => {
    for (const { log } of rooms.values()) log.note("loud", "The keeper says: ", text);
  });
  client.on("error", (error) => console.error(error));
}

/** @param {string} room @param {string} account @param {boolean} here */
function moved(room, account, here) {
  const into = rooms.get(room);
  if (!into) return;
  into.members = into.members.filter((name) => name !== account);
  if (here) into.members = [...into.members, account].sort();
  into.log.moved(account, here ? "came in" : "left");
  if (room === current) render();
}

/** @param {import("./linkstead.js").StateEvent} event */
function changed({ state, url, reconnected, waitMs, cause }) {
  const gateway = new URL(url).host;
  if (state === "connecting") showState(state, "Connecting…", gateway);
  else if (state === "open") {
    showState(state, "Connected", gateway);
    showBanner("");
    comeIn(reconnected);
  } else if (state === "reconnecting") {
    const when = waitMs >= 1000 ? ` in ${Math.round(waitMs / 1000)} s` : "";
    showState(state, "Reconnecting…", gateway);
    showBanner(`${whyLost(cause)} Trying ${gateway}${when}. What you write stays here until then.`);
  } else showState(state, "Closed", "");
}

/** Logs in and enters every room. To the providers a new connection is a new session. @param {boolean} again */
async function comeIn(again) {
  const turn = ++coming;
  const stale = () => turn !== coming;
  if (!(await insist(stale, () => client?.request(Tavern.login, {})))) return;
  for (const room of [...rooms.values()]) {
    if (!(await enterRoom(room, stale))) return;
  }
  if (stale()) return;
  if (rooms.size === 0) return;
  if (again) {
    const words = `You are back, by ${new URL(client?.url ?? "").host}. What was said meanwhile is not shown.`;
    for (const { log } of rooms.values()) log.note("", words);
  }
  sessionStorage.setItem("tavern", JSON.stringify({ name: me, rooms: [...rooms.keys()] }));
  if (at("tavern").hidden) {
    at("door").hidden = true;
    at("tavern").hidden = false;
    at("me").textContent = me;
    paint(at("me-face"), me);
    show(current);
    at("text").focus();
  }
  render();
}

/** @param {Room} room @param {() => boolean} stale @returns {Promise<boolean>} whether to go on */
async function enterRoom(room, stale) {
  const entered = await insist(stale, () => client?.request(Rooms.enter, { room: room.name }), (error) => {
    rooms.delete(room.name);
    if (current === room.name) current = [...rooms.keys()][0] ?? "";
    if (rooms.size === 0) leaveTavern(inWords(error));
    else rooms.get(current)?.log.note("odd", `${room.name}: ${inWords(error)}`);
  });
  if (stale()) return false;
  if (entered) room.members = entered.members;
  return true;
}

/**
 * Asks until the cluster says yes, or says a no that stays a no.
 * @template T
 * @param {() => boolean} stale
 * @param {() => Promise<T> | undefined} ask
 * @param {(error: unknown) => void} [refused]
 * @returns {Promise<T | undefined>}
 */
async function insist(stale, ask, refused = (error) => leaveTavern(inWords(error))) {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await ask();
      return stale() ? undefined : answer ?? /** @type {any} */ (true);
    } catch (error) {
      const { kind, retry, retryAfterMs } = /** @type {any} */ (error);
      // With the connection gone, the next one begins anew.
      if (stale() || ["lost", "not_connected", "closed"].includes(kind)) return undefined;
      // Coming in twice harms nobody, so a request whose outcome is unknown is repeated too.
      if (retry === "never" || tries >= TRIES_MAX) return void refused(error);
      await new Promise((resolve) => setTimeout(resolve, Math.max(retryAfterMs, 200)));
      if (stale()) return undefined;
    }
  }
}

/** @param {import("./linkstead.js").Cause} cause */
function closed(cause) {
  if (cause.kind === "by_us") return;
  coming++;
  const words = whyClosed(cause);
  if (at("tavern").hidden) {
    rooms.clear();
    return openDoor(`${words.title}. ${words.why}`);
  }
  showBanner("");
  showClosed(words, cause.name ? `${cause.name} (${cause.code})` : "");
}

/** @param {string} [error] */
function leaveTavern(error) {
  coming++;
  client?.close();
  client = null;
  rooms.clear();
  sessionStorage.removeItem("tavern");
  slide(null);
  openDoor(error);
}

// ---- inside ----

function render() {
  const room = rooms.get(current);
  if (!room) return;
  showRooms(rooms.values(), current, show, leaveRoom);
  showPeople(room.members, me, aim, me === KEEPER ? kick : null);
}

/** @param {string} name */
function show(name) {
  const room = rooms.get(name);
  if (!room) return;
  current = name;
  room.unread = 0;
  showLog(room.log);
  render();
  slide(null);
  at("text").focus();
}

/** @param {string} name */
async function joinRoom(name) {
  if (rooms.has(name)) return show(name);
  const room = newRoom(name);
  const turn = coming;
  try {
    const entered = await client?.request(Rooms.enter, { room: name });
    if (!entered || turn !== coming) return;
    room.members = entered.members;
    rooms.set(name, room);
    sessionStorage.setItem("tavern", JSON.stringify({ name: me, rooms: [...rooms.keys()] }));
    show(name);
  } catch (error) {
    slide(null);
    note("odd", `${name}: ${inWords(error)}`);
  }
}

/** @param {string} name */
async function leaveRoom(name) {
  if (rooms.size === 1) return leaveTavern();
  rooms.delete(name);
  sessionStorage.setItem("tavern", JSON.stringify({ name: me, rooms: [...rooms.keys()] }));
  if (current === name) show([...rooms.keys()][0]);
  else render();
  // If it can't be said now, the end of the session says it.
  await client?.request(Rooms.leave, { room: name }).catch(() => {});
}

/** @type {(kind: "" | "loud" | "odd", ...words: (string | Node)[]) => void} */
const note = (kind, ...words) => rooms.get(current)?.log.note(kind, ...words);

/** @param {string} name whom the next words are for */
function aim(name) {
  whisperTo = name;
  at("to").hidden = !name;
  at("to-name").textContent = name;
  at("text").placeholder = name ? `Only ${name} will hear it` : "Say something";
  slide(null);
  at("text").focus();
}

/** @param {string} name */
async function kick(name) {
  try {
    await client?.request(Guests.kick, { account: name });
    note("", `${name} was shown out.`);
  } catch (error) {
    note("odd", `${name}: ${inWords(error)}`);
  }
}

/** @param {string} room @param {string} text */
async function say(room, text) {
  const log = rooms.get(room)?.log;
  const line = log?.waiting(me, text);
  if (!log || !line) return;
  try {
    // The room's own line comes before the answer, and stands in this one's place.
    await client?.request(Rooms.say, { room, text });
    log.heard(line);
  } catch (error) {
    const again = () => say(room, text);
    if (isFinal(error)) log.failed(line, inWords(error), "Change it", () => write(text));
    else log.failed(line, inWords(error), isSure(error) ? "Try again" : "Say it once more", again);
  }
}

/** Puts words back to where they were written. @param {string} text */
function write(text) {
  if (!at("text").value) at("text").value = text;
  count();
  at("text").focus();
}

/** @param {string} to @param {string} text */
async function whisper(to, text) {
  const log = rooms.get(current)?.log;
  try {
    await client?.request(Guests.whisper, { to, text });
    log?.spoken({ from: me, text, at: new Date(), mine: true, whisper: `whispers to ${to}` });
  } catch (error) {
    log?.note("odd", `Your whisper to ${to} was not heard. ${inWords(error)}`);
    write(text);
  }
}

const HELP = "Commands: /whisper NAME TEXT, /room NAME, /announce TEXT and /kick NAME (the keeper's), /leave";

/** @param {string} line begins with / */
async function obey(line) {
  const [word, ...rest] = line.slice(1).split(" ");
  const text = rest.join(" ").trim();
  const [name, ...words] = text.split(" ");
  if (word === "whisper" && words.length) return whisper(name, words.join(" ").trim());
  if (word === "room" && text) return joinRoom(text);
  if (word === "kick" && text) return kick(text);
  if (word === "leave") return leaveTavern();
  if (word !== "announce" || !text) return note("", HELP);
  try {
    await client?.request(Tavern.announce, { text });
  } catch (error) {
    note("odd", inWords(error));
  }
}

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text).length;

function count() {
  const left = TEXT_BYTES_MAX - bytes(at("text").value);
  at("count").textContent = left < 100 ? String(left) : "";
  at("count").classList.toggle("over", left < 0);
}

// ---- what the guest does ----

at("entry").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const name = at("name").value.trim();
  if (!name) return openDoor("Choose a name first.");
  enterTavern(name, [at("room").value.trim() || "attic"]);
});

at("say").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const text = at("text").value.trim();
  // While there is no connection, what is written stays where it is.
  if (!text || client?.state !== "open" || bytes(text) > TEXT_BYTES_MAX) return;
  at("text").value = "";
  count();
  if (text.startsWith("/")) obey(text);
  else if (whisperTo) whisper(whisperTo, text);
  else say(current, text);
});

at("join").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const name = at("join-room").value.trim();
  at("join-room").value = "";
  if (name) joinRoom(name);
});

at("text").addEventListener("input", count);
at("leave").addEventListener("click", () => leaveTavern());
at("to-cancel").addEventListener("click", () => aim(""));
at("show-rooms").addEventListener("click", () => slide("rooms"));
at("show-people").addEventListener("click", () => slide("people"));
at("shade").addEventListener("click", () => slide(null));
at("again").addEventListener("click", () => {
  at("closed").close();
  const names = [...rooms.keys()];
  rooms.clear();
  client = null;
  openDoor();
  at("name").value = me;
  enterTavern(me, names);
});
at("closed").addEventListener("cancel", (/** @type {Event} */ event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  slide(null);
  if (whisperTo) aim("");
});

at("name").value = asked.get("name") ?? remembered?.name ?? "";
at("room").value = asked.get("room") ?? "";
openDoor();
if (remembered?.rooms?.length) enterTavern(remembered.name, remembered.rooms);
