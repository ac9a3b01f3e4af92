// @ts-check
/**
 * The tavern's page in Chromium, against a real cluster. Pictures of it go to a folder that is named at the end, or to
 * the one in the variable PICTURES.
 */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";

import { Cluster, PATIENCE, browser } from "./cluster.js";

const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), "linkstead-pictures-"));
mkdirSync(pictures, { recursive: true });

/** @type {Cluster} */
let cluster;
/** @type {Awaited<ReturnType<typeof browser>>} */
let chromium;
/** What went wrong in a page without being shown. @type {string[]} */
let faults = [];

before(async () => {
  [cluster, chromium] = await Promise.all([Cluster.start(), browser()]);
});

after(async () => {
  await chromium?.close();
  await cluster?.stop();
  console.log(`pictures: ${pictures}`);
});

afterEach(async () => {
  for (const page of chromium.context.pages().slice(1)) await page.close();
  const seen = faults;
  faults = [];
  assert.deepEqual(seen, [], "nothing fails unseen in a page");
});

/** An empty page. What goes wrong in it is a fault of the test. */
async function open() {
  const page = await chromium.context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    // A browser writes down each dial that fails; the page shows it.
    if (message.type() === "error" && !/WebSocket|ERR_CONNECTION/.test(message.text())) faults.push(message.text());
  });
  return page;
}

/** @param {string} name @param {{ room?: string, of?: Cluster, gateways?: string[], gateway?: number }} [more] */
async function guest(name, { room = "attic", of = cluster, gateways, gateway = 1 } = {}) {
  const page = await open();
  const address = gateways ? await of.pageOf(gateways) : of.page;
  await page.goto(`${address}/?gateway=${gateway}`);
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Room", { exact: true }).fill(room);
  await page.getByRole("button", { name: "Come in" }).click();
  await page.locator("#state[data-state=open]").waitFor();
  await page.locator("#tavern").waitFor();
  return page;
}

/** @typedef {import("playwright-core").Page} Page */

/** @param {Page} page @param {string} text */
async function say(page, text) {
  await page.getByLabel("What you say").fill(text);
  await page.keyboard.press("Enter");
}

/** Waits for a line in the log. @param {Page} page @param {string} text */
const hears = (page, text) => page.locator("#log .line:not(.waiting) .text", { hasText: text }).first().waitFor();

describe("the tavern's page", { timeout: 300_000 }, () => {
  it("lets two guests talk through two gateways, and goes on when one is killed", async () => {
    const [one, two] = await cluster.gateways(2);
    const gateways = [one.addr, two.addr];
    const ann = await guest("ann", { gateways, gateway: 1 });
    const bob = await guest("bob", { gateways, gateway: 2 });
    await ann.locator("#gateway", { hasText: one.addr }).waitFor();
    await bob.locator("#gateway", { hasText: two.addr }).waitFor();
    await ann.locator(".note", { hasText: "bob came in" }).waitFor();
    await say(ann, "hello, bob");
    await hears(bob, "hello, bob");
    await say(bob, "hello, ann");
    await hears(ann, "hello, ann");
    assert.deepEqual(await ann.locator("#people bdi").allTextContents(), ["ann", "bob"]);

    await two.process.end("SIGKILL");
    await bob.locator("#banner", { hasText: "The connection broke." }).waitFor();
    await bob.locator("#state[data-state=open]").waitFor();
    await bob.locator("#gateway", { hasText: one.addr }).waitFor();
    await bob.locator(".note", { hasText: "You are back" }).waitFor();
    assert.ok(await bob.locator("#banner").isHidden());
    await say(bob, "that was close");
    await hears(ann, "that was close");
    await say(ann, "welcome back");
    await hears(bob, "welcome back");
  });

  it("shows names and words of strangers as text, whatever they hold", async () => {
    const evil = "<img src=x onerror=alert(1)>";
    const ann = await guest("ann");
    ann.on("dialog", (dialog) => {
      faults.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    const stranger = await guest(evil);
    await ann.locator(".note bdi", { hasText: evil }).waitFor();
    await say(stranger, "<script>alert(2)</script> & <b>bold</b>");
    await hears(ann, "<script>alert(2)</script> & <b>bold</b>");
    await ann.locator("#log .line header bdi", { hasText: evil }).waitFor();
    await ann.locator("#people bdi", { hasText: evil }).waitFor();
    for (const page of [ann, stranger]) {
      assert.equal(await page.locator("#tavern img:not([src='icon.svg']), #tavern b, #tavern script").count(), 0);
    }
  });

  it("gets a ticket where the gateways want one, and a new one for the next login", async () => {
    const of = await Cluster.start("--auth", "ticket");
    try {
      const ann = await guest("ann", { of });
      await say(ann, "I have a ticket");
      await hears(ann, "I have a ticket");
      await ann.reload();
      await ann.locator("#state[data-state=open]").waitFor();
      await say(ann, "and another one");
      await hears(ann, "and another one");
      await ann.close();
    } finally {
      await of.stop();
    }
  });

  it("has rooms, counts what was not read, and whispers", async () => {
    const ann = await guest("ann");
    const bob = await guest("bob");
    await ann.getByLabel("Name of a room to enter").fill("cellar");
    await ann.keyboard.press("Enter");
    await ann.locator("#room-name", { hasText: "cellar" }).waitFor();
    await say(bob, "are you gone?");
    await ann.locator("#rooms .unread .badge", { hasText: "1" }).waitFor();
    assert.match(await ann.title(), /^\(1\) cellar/);
    await ann.getByRole("button", { name: "attic" }).first().click();
    await hears(ann, "are you gone?");
    await bob.locator("#people").getByRole("button", { name: "ann" }).click();
    await say(bob, "only for you");
    await ann.locator(".line.whisper", { hasText: "only for you" }).waitFor();
    await bob.locator(".line.whisper", { hasText: "whispers to ann" }).waitFor();
    await bob.keyboard.press("Escape");
    await say(bob, "/whisper nobody hello");
    await bob.locator(".note.odd", { hasText: "Nobody of that name is here." }).waitFor();
    await say(bob, "\u0007");
    const failed = bob.locator(".line.failed", { hasText: "That can't be said here" });
    await failed.getByRole("button", { name: "Change it" }).waitFor();
    await picture(bob, "failed-1440-light", 1440, 900, "light");
    await failed.getByRole("button", { name: "Change it" }).click();
    await failed.waitFor({ state: "detached" });
  });

  it("tells a guest who is shown out, and lets them come in again", async () => {
    const keeper = await guest("keeper");
    const bob = await guest("bob");
    await keeper.locator("#people li", { hasText: "bob" }).getByRole("button", { name: "Show out" }).click();
    await bob.getByRole("heading", { name: "You were shown out" }).waitFor();
    await bob.locator("#closed-why", { hasText: "The keeper has shown you out." }).waitFor();
    await keeper.locator("#log .note", { hasText: "bob left" }).waitFor();
    await picture(bob, "closed-380-light", 380, 720, "light");
    await bob.getByRole("button", { name: "Come in again" }).click();
    await bob.locator("#state[data-state=open]").waitFor();
    await say(bob, "sorry");
    await hears(keeper, "sorry");
    await say(keeper, "/announce closing time");
    await bob.locator(".note.loud", { hasText: "closing time" }).waitFor();
  });

  it("says so when no gateway is there, and keeps what was written when a connection is lost", async () => {
    const nobody = await open();
    await nobody.goto(await cluster.pageOf(["127.0.0.1:1"]));
    await nobody.getByLabel("Your name").fill("ann");
    await nobody.keyboard.press("Enter");
    await nobody.getByRole("alert").filter({ hasText: "The tavern can't be reached" }).waitFor();

    const [gateway] = await cluster.gateways(1);
    const ann = await guest("ann", { gateways: [gateway.addr] });
    await gateway.process.end("SIGKILL");
    await ann.locator("#state[data-state=reconnecting]").waitFor();
    await say(ann, "is anybody there?");
    assert.equal(await ann.getByLabel("What you say").inputValue(), "is anybody there?");
    await picture(ann, "reconnecting", 1440, 900, "dark");
  });

  it("comes in again after a reload, and can be used by keyboard alone", async () => {
    const ann = await guest("ann", { room: "garden" });
    await ann.reload();
    await ann.locator("#room-name", { hasText: "garden" }).waitFor();
    assert.equal(await ann.evaluate(() => document.activeElement?.id), "text");
    await ann.keyboard.type("typed blind");
    await ann.keyboard.press("Enter");
    await hears(ann, "typed blind");
    for (let i = 0; i < 30; i++) {
      await ann.keyboard.press("Shift+Tab");
      if ((await ann.evaluate(() => document.activeElement?.id)) === "leave") break;
    }
    await ann.keyboard.press("Enter");
    await ann.getByLabel("Your name").waitFor();
    assert.equal(await ann.evaluate(() => document.activeElement?.id), "name");
  });

  it("fits telephones and screens, in the light and in the dark", async () => {
    const ann = await guest("ann");
    const bob = await guest("Bob the Builder");
    const liu = await guest("刘小明");
    await say(ann, "Evening all! Did anybody see the new map?");
    await hears(bob, "new map");
    await say(bob, "I did. The bridge in the north is gone, so everyone has to come through the valley now.");
    await say(bob, "Bring torches.");
    await say(liu, "晚上好!明天八点一起打副本吗?");
    await say(liu, "https://example.test/a-very-long-address-without-any-break-that-would-push-a-telephone-wide-open/0123456789");
    await hears(ann, "0123456789");
    await say(ann, "Eight is fine. Who brings the torches?");
    await hears(liu, "Eight is fine");
    await ann.getByLabel("Name of a room to enter").fill("cellar");
    await ann.keyboard.press("Enter");
    await ann.locator("#room-name", { hasText: "cellar" }).waitFor();
    await ann.locator("#rooms").getByRole("button", { name: "attic" }).first().click();
    await bob.locator("#people").getByRole("button", { name: "ann" }).click();
    await say(bob, "I have twelve, but don't tell the others.");
    await ann.locator(".line.whisper").waitFor();
    await say(liu, "我带火把。");
    await hears(ann, "我带火把");
    const door = await open();
    await door.goto(cluster.page);
    for (const scheme of /** @type {const} */ (["light", "dark"])) {
      for (const [width, height] of [[1440, 900], [380, 720]]) {
        for (const [name, page] of /** @type {[string, Page][]} */ ([["tavern", ann], ["door", door]])) {
          await picture(page, `${name}-${width}-${scheme}`, width, height, scheme);
        }
      }
    }
    await ann.getByRole("button", { name: /Rooms/ }).click();
    await picture(ann, "rooms-380-dark", 380, 720, "dark");
    await ann.keyboard.press("Escape");
    await ann.getByRole("button", { name: /here/ }).click();
    await picture(ann, "people-380-light", 380, 720, "light");
  });
});

/** @param {Page} page @param {string} name @param {number} width @param {number} height @param {"light" | "dark"} colorScheme */
async function picture(page, name, width, height, colorScheme) {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  await page.setViewportSize({ width, height });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${name} is ${wide} wide`);
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}
