// @ts-check
/** What went wrong, in the words of a guest, and what to do about it. */

/** The tavern's own refusals, by number: examples/tavern/src/codes.rs. @type {Record<number, string>} */
const TAVERN = {
  1: "A room's name has 1 to 32 letters or signs.",
  2: "That can't be said here: it is too long, or holds signs that nobody can see.",
  3: "You are not in this room any more. Enter it again.",
  4: "This room is full.",
  5: "There is no place for another room just now.",
  6: "You are in too many rooms. Leave one first.",
  7: "Nobody of that name is here.",
  8: "Only the keeper may do this.",
  9: "The keeper has shown you out.",
};

/** The framework's refusals that a guest can meet. @type {Record<string, string>} */
const FRAMEWORK = {
  BUSY: "It is crowded just now.",
  PROVIDER_BUSY: "It is crowded just now.",
  NO_PROVIDER: "This part of the tavern is closed for a moment.",
  PROVIDER_BROKEN: "This part of the tavern had to close for a moment.",
  TIMEOUT: "No answer came. It may have been heard all the same.",
  AUTH_REFUSED: "The gateway did not believe that this is you.",
  TICKET_INVALID: "The gateway wants a ticket, and this page has none that it takes.",
  TOO_MANY_ATTEMPTS: "Too many logins from your address failed. Wait a moment.",
  NAME_INVALID: "That name can't be used here. Choose another.",
  TOO_MANY_CONNECTIONS: "The tavern is full.",
  TOO_MANY_FROM_ADDRESS: "Too many guests came from your address. Close some pages.",
  TOO_MANY_UNAUTHED: "Too many guests are at the door just now.",
  SLOW_READER: "Your connection was too slow for the talk here.",
  SHUTTING_DOWN: "The gateway is being restarted.",
  IDLE_TIMEOUT: "Nothing was heard from you for too long.",
  KICKED: "The keeper of this cluster has ended your visit.",
};

/** @param {unknown} error @returns {string} */
export function inWords(error) {
  const { kind, game, codeName, message } = /** @type {import("./linkstead.js").LinksteadError} */ (error);
  if (game) return TAVERN[game.code] ?? `The tavern says no (code ${game.code}).`;
  if (kind === "refused") return FRAMEWORK[codeName] ?? `The cluster says no: ${message}.`;
  if (kind === "timeout") return FRAMEWORK.TIMEOUT;
  if (kind === "lost") return "The connection broke before the answer. It may have been heard all the same.";
  if (kind === "not_connected" || kind === "closed") return "There is no connection just now. Nothing was sent.";
  if (kind === "busy") return "Too much waits to be sent already. Nothing was sent.";
  if (kind === "too_large") return "That is too long.";
  return `Something went wrong: ${message}`;
}

/** Whether it certainly did not happen, so that trying again repeats nothing. @param {unknown} error */
export function isSure(error) {
  return /** @type {import("./linkstead.js").LinksteadError} */ (error).retry !== "unknown";
}

/** Whether the same words would be refused again. @param {unknown} error */
export function isFinal(error) {
  return /** @type {import("./linkstead.js").LinksteadError} */ (error).retry === "never";
}

/** Why the connection ended, and what to do. @param {import("./linkstead.js").Cause} cause */
export function whyClosed({ kind, code, name, text }) {
  const shownOut = kind === "reported" && !name;
  if (shownOut) return { title: "You were shown out", why: TAVERN[code] ?? text };
  if (name) return { title: "The door is closed", why: FRAMEWORK[name] ?? text };
  if (kind === "unreachable" || kind === "connect_timeout") {
    return { title: "The tavern can't be reached", why: "No gateway answers. Is the cluster up? Start it and come in again." };
  }
  if (kind === "no_token") return { title: "There is no ticket", why: "This page's server gives none for that name." };
  if (kind === "bad_bytes") {
    return { title: "This page does not fit the gateway", why: "It sent something that this page does not know. Reload the page." };
  }
  return { title: "The connection is gone", why: "The gateways did not answer for a long time." };
}

/** Why the connection was lost, in a few words. @param {import("./linkstead.js").Cause | null} cause */
export function whyLost(cause) {
  if (!cause) return "";
  if (cause.name) return FRAMEWORK[cause.name] ?? cause.text;
  if (cause.kind === "no_token") return "This page's server gives no ticket.";
  if (cause.kind === "silent") return "The gateway is silent.";
  if (cause.kind === "unreachable" || cause.kind === "connect_timeout") return "This gateway does not answer.";
  return "The connection broke.";
}
