// @ts-check
/**
 * What a guest sees. Knows nothing of the network. Whatever others wrote is put in as text, never as HTML, and is
 * isolated, so that it can't turn the direction of what stands beside it.
 */

/** @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id);

/** Lines that a room keeps; older ones are forgotten. */
const LINES_MAX = 500;
/** Lines of one guest within this time stand under one name. */
const TOGETHER_MS = 5 * 60_000;

/** @typedef {{ from: string, text: string, at: Date, mine: boolean, whisper?: string }} Spoken */

/** @type {(tag: string, className?: string, ...inside: (Node | string)[]) => HTMLElement} */
export function el(tag, className = "", ...inside) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...inside);
  return made;
}

/** @param {string} name @returns {HTMLElement} */
const named = (name) => el("bdi", "", name);

/** @param {string} text @param {() => void} act @param {string} [className] @returns {HTMLElement} */
function button(text, act, className = "") {
  const made = /** @type {HTMLButtonElement} */ (el("button", className, text));
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** The round sign of a guest: the same colour for the same name. @param {HTMLElement} face @param {string} name */
export function paint(face, name) {
  let hash = 7;
  for (const c of name) hash = (Math.imul(hash, 31) + (c.codePointAt(0) ?? 0)) >>> 0;
  face.style.setProperty("--hue", String((hash % 24) * 15));
  face.textContent = [...name][0]?.toUpperCase() ?? "?";
  return face;
}

/** @param {string} name */
function face(name) {
  const made = paint(el("span", "face"), name);
  made.setAttribute("aria-hidden", "true");
  return made;
}

/** @param {Date} when */
function clock(when) {
  const time = /** @type {HTMLTimeElement} */ (el("time", "", when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })));
  time.dateTime = when.toISOString();
  time.title = when.toLocaleString();
  return time;
}

/** The lines of one room, shown or not. */
export class Log {
  /** @param {string} room */
  constructor(room) {
    this.room = room;
    this.element = el("div", "lines");
    /** @type {Spoken | null} */
    this.last = null;
    this.empty = el("p", "empty", "Nobody has said anything yet. Say hello!");
    this.element.append(this.empty);
  }

  /** @param {HTMLElement} line */
  #add(line) {
    this.empty.remove();
    const log = /** @type {HTMLElement} */ (at("log"));
    this.element.append(line);
    while (this.element.childElementCount > LINES_MAX) this.element.firstElementChild?.remove();
    // Who reads further up is not pulled down.
    if (this.element.isConnected && readsNewest) log.scrollTop = log.scrollHeight;
    return line;
  }

  /** @param {Spoken} spoken */
  spoken(spoken) {
    const { from, text, at, mine, whisper } = spoken;
    const last = this.last;
    const together = !!last && last.from === from && at.getTime() - last.at.getTime() < TOGETHER_MS && !whisper && !last.whisper;
    this.last = spoken;
    const words = el("div", "text", text);
    words.dir = "auto";
    const line = el("div", `line ${together ? "more" : "first"}${mine ? " mine" : ""}${whisper ? " whisper" : ""}`);
    if (!together) {
      const head = el("header", "", named(from), clock(at));
      if (whisper) head.insertBefore(el("span", "", whisper), head.lastChild);
      line.append(face(from), head);
    }
    line.append(words);
    return this.#add(line);
  }

  /** What was said by us and is on its way. @param {string} from @param {string} text */
  waiting(from, text) {
    const line = this.spoken({ from, text, at: new Date(), mine: true });
    line.classList.add("waiting");
    line.setAttribute("aria-hidden", "true");
    this.last = null;
    return line;
  }

  /** It was heard: the room's own line stands in its place. @param {HTMLElement} line */
  heard(line) {
    line.remove();
  }

  /** @param {HTMLElement} line @param {string} why @param {string} again @param {() => void} act */
  failed(line, why, again, act) {
    line.classList.replace("waiting", "failed");
    line.removeAttribute("aria-hidden");
    const drop = button("Forget it", () => line.remove());
    const retry = button(again, () => {
      line.remove();
      act();
    });
    line.append(el("div", "what", why, retry, drop));
    const log = at("log");
    log.scrollTop = log.scrollHeight;
  }

  /** @param {"" | "loud" | "odd"} kind @param {...(string | Node)} words */
  note(kind, ...words) {
    this.last = null;
    this.#add(el("p", `note ${kind}`.trim(), ...words));
  }

  /** @param {string} name @param {string} what */
  moved(name, what) {
    this.note("", named(name), ` ${what}`);
  }
}

// Whoever reads the newest lines goes on reading them when the window changes, as when a keyboard slides in.
let readsNewest = true;
at("log").addEventListener("scroll", () => {
  const { scrollHeight, scrollTop, clientHeight } = at("log");
  if (clientHeight === height) readsNewest = scrollHeight - scrollTop - clientHeight < 80;
});
let height = 0;
new ResizeObserver(() => {
  height = at("log").clientHeight;
  if (readsNewest) at("log").scrollTop = at("log").scrollHeight;
}).observe(at("log"));

/** @param {Log} log */
export function showLog(log) {
  at("room-name").textContent = log.room;
  at("log").replaceChildren(log.element);
  readsNewest = true;
  at("log").scrollTop = at("log").scrollHeight;
}

/**
 * @param {Iterable<{ name: string, unread: number }>} rooms @param {string} current
 * @param {(name: string) => void} choose @param {(name: string) => void} leave
 */
export function showRooms(rooms, current, choose, leave) {
  let elsewhere = 0;
  const items = [...rooms].map(({ name, unread }) => {
    const item = el("li", `${name === current ? "current" : ""}${unread ? " unread" : ""}`.trim());
    const main = button("", () => choose(name), "main");
    main.append(el("span", "hash", "#"), named(name));
    if (name === current) main.setAttribute("aria-current", "true");
    if (unread) {
      elsewhere += unread;
      main.append(badge(unread));
    }
    const out = button("✕", () => leave(name), "quiet more");
    out.title = `Leave ${name}`;
    out.setAttribute("aria-label", `Leave the room ${name}`);
    item.append(main, out);
    return item;
  });
  at("rooms").replaceChildren(...items);
  const sum = at("unread-elsewhere");
  sum.hidden = elsewhere === 0;
  sum.textContent = elsewhere > 99 ? "99+" : String(elsewhere);
  document.title = `${elsewhere ? `(${elsewhere}) ` : ""}${current} – The Tavern`;
}

/** @param {number} count */
function badge(count) {
  const made = el("span", "badge", count > 99 ? "99+" : String(count));
  made.setAttribute("aria-label", `${count} unread`);
  return made;
}

/**
 * @param {readonly string[]} names @param {string} me
 * @param {(name: string) => void} whisper @param {((name: string) => void) | null} kick the keeper's
 */
export function showPeople(names, me, whisper, kick) {
  const items = names.map((name) => {
    const item = el("li");
    const main = /** @type {HTMLButtonElement} */ (button("", () => whisper(name), "main"));
    main.append(face(name), named(name));
    if (name === me) {
      main.append(el("span", "you", "you"));
      main.disabled = true;
    } else main.title = `Whisper to ${name}`;
    item.append(main);
    if (kick && name !== me) item.append(button("Show out", () => kick(name), "quiet more"));
    return item;
  });
  at("people").replaceChildren(...items);
  at("people-count").textContent = String(names.length);
}

/** @param {string} state @param {string} text @param {string} gateway */
export function showState(state, text, gateway) {
  at("state").dataset.state = state;
  at("state").textContent = text;
  at("state").title = text;
  at("gateway").textContent = gateway;
  at("send").disabled = state !== "open";
}

/** @param {string} text empty takes it away */
export function showBanner(text) {
  at("banner").hidden = !text;
  at("banner").textContent = text;
}

/** @param {"rooms" | "people" | null} which slides over the talk, in a narrow window */
export function slide(which) {
  for (const name of /** @type {const} */ (["rooms", "people"])) {
    at(`${name}-panel`).classList.toggle("shown", which === name);
    at(`show-${name}`).setAttribute("aria-expanded", String(which === name));
  }
  at("shade").hidden = which === null;
  if (which) at(`${which}-panel`).querySelector("button, input")?.focus();
}

/** @param {{ title: string, why: string }} words @param {string} code */
export function showClosed({ title, why }, code) {
  at("closed-title").textContent = title;
  at("closed-why").textContent = why;
  at("closed-code").textContent = code;
  if (!at("closed").open) at("closed").showModal();
}
