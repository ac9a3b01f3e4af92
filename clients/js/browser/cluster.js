// @ts-check
/** What the page is tested in: a real cluster, each part a process of its own where it must be killed, and Chromium. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const built = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");

/** What is tested; whoever starts the tests has built it. */
const [LINKSTEAD, TAVERN] = ["linkstead", "tavern"].map((program) => join(built, "debug", program));

/** Longer than anything here takes on a busy machine. */
export const PATIENCE = 30_000;

/** A process that is awaited by its lines, and ends with its test. */
export class Process {
  /** @param {string} program @param {string[]} args */
  constructor(program, args) {
    this.child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    /** @type {string[]} */
    this.seen = [];
    /** @type {{ text: string, resolve: (line: string) => void }[]} */
    this.waiting = [];
    createInterface({ input: /** @type {any} */ (this.child.stdout) }).on("line", (line) => {
      this.seen.push(line);
      for (const { text, resolve } of this.waiting) if (line.includes(text)) resolve(line);
    });
    this.ended = once(this.child, "exit");
  }

  /** A line that contains `text`. @param {string} text @returns {Promise<string>} */
  async line(text) {
    const seen = this.seen.find((line) => line.includes(text));
    if (seen) return seen;
    let timer;
    const found = new Promise((resolve) => this.waiting.push({ text, resolve }));
    const late = new Promise((_, reject) => {
      const failed = (/** @type {string} */ why) => reject(new Error(`${why} without "${text}": ${this.seen.join("\n")}`));
      timer = setTimeout(() => failed("a minute passed"), PATIENCE);
      this.ended.then(() => failed("it ended"));
    });
    try {
      return /** @type {string} */ (await Promise.race([found, late]));
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {NodeJS.Signals} signal */
  async end(signal = "SIGTERM") {
    this.child.kill(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await this.ended;
  }
}

/** The word after a label. @param {string} line @param {string} label */
export function after(line, label) {
  const word = line.split(label)[1]?.trim().split(/[\s,]/)[0];
  if (!word) throw new Error(`no ${label} in: ${line}`);
  return word;
}

/** `linkstead up` on free ports, with the page; and beside it, when a test asks, parts that can be killed. */
export class Cluster {
  /** Where the page is. */
  page = "";
  /** The gateway of `up`, which lives as long as the page. */
  gateway = "";
  /** @type {Process[]} */
  #processes = [];
  /** @type {import("node:http").Server[]} */
  #servers = [];

  /** @param {string[]} more what `up` is told beside */
  static async start(...more) {
    for (const program of [LINKSTEAD, TAVERN]) {
      if (!existsSync(program)) throw new Error(`${program} is missing: cargo build -p cli -p tavern`);
    }
    const cluster = new Cluster();
    const up = cluster.#run(LINKSTEAD, ["up", "--base-port", "0", "--linkds", "1", "--web", "127.0.0.1:0", ...more]);
    cluster.gateway = after(await up.line("linkd-1"), " ws ");
    cluster.page = after(await up.line("page:"), "page:");
    await up.line("stop:");
    return cluster;
  }

  /** @param {string} program @param {string[]} args */
  #run(program, args) {
    const process = new Process(program, args);
    this.#processes.push(process);
    return process;
  }

  /** @param {string} program @param {string[]} role @param {string[]} settings */
  #part(program, role, settings) {
    const known = ["node.insecure=true", "node.ops=127.0.0.1:0", ...settings];
    return this.#run(program, [...role, "--profile", "dev", ...known.flatMap((setting) => ["--set", setting])]);
  }

  /** Two gateways of one cluster, each a process of its own. @param {number} count */
  async gateways(count) {
    const addr = await free();
    const directory = `node.directory=["${addr}"]`;
    await this.#part(LINKSTEAD, ["service-manager"], [`service_manager.listen=${addr}`]).line("service-manager ready");
    const ready = Array.from({ length: count }, async (_, index) => {
      const ports = ["listen", "ws_listen", "provider_listen"].map((port) => `linkd.${port}=127.0.0.1:0`);
      const process = this.#part(LINKSTEAD, ["linkd"], [`node.id=linkd-${index + 1}`, directory, ...ports]);
      return { process, addr: after(await process.line("linkd ready"), "WebSocket on ") };
    });
    const gateways = await Promise.all(ready);
    await this.#part(TAVERN, ["run"], [directory, "provider.server_id=1"]).line(" ready");
    return gateways;
  }

  /**
   * The page of `up` for other gateways than its own: it is told so, and its policy lets it.
   * @param {string[]} gateways
   */
  async pageOf(gateways) {
    const urls = gateways.map((addr) => `ws://${addr}`);
    const server = createHttpServer(async (request, response) => {
      const path = new URL(request.url ?? "/", this.page).pathname;
      const from = await fetch(this.page + path);
      const policy = from.headers.get("content-security-policy") ?? "";
      response.setHeader("content-type", from.headers.get("content-type") ?? "");
      response.setHeader("content-security-policy", policy.replace("connect-src 'self'", `$& ${urls.join(" ")}`));
      response.end(path === "/config.json" ? JSON.stringify({ gateways: urls }) : await from.text());
    }).listen(0, "127.0.0.1");
    this.#servers.push(server);
    await once(server, "listening");
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  }

  async stop() {
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
    await Promise.all(this.#processes.map((process) => process.end("SIGKILL")));
  }
}

/** An address that nobody listens at. @returns {Promise<string>} */
async function free() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  return `127.0.0.1:${port}`;
}

/** Chromium with a fresh profile, that calls nobody. */
export async function browser() {
  const program = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const profile = mkdtempSync(join(tmpdir(), "linkstead-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: program,
    args: [
      ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
  return {
    context,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
