// SPDX-License-Identifier: Apache-2.0
// The way to goodbot: events wait in memory, in order, until it has them.

import { open } from "node:fs/promises";
import { bySocket } from "./socket.js";
import { type Json, type Logger, type Outgoing, type Receipt, object, text } from "./types.js";

const MOST = 500;
const MOST_BYTES = 8_000_000;
const BATCH = 20;
const BATCH_BYTES = 2_000_000;
const QUICK_MS = 2_000;
const HELLO_MS = 20_000; // a gateway that starts keeps its own loop busy
const COMMAND_MS = 15_000;
const LONGEST_WAIT_MS = 60_000;
const PATH = "/v1/openclaw/events";
const LOCAL = ["127.0.0.1", "localhost", "[::1]"];

interface Waiting {
  event: Outgoing;
  size: number;
  done: (receipt: Receipt | undefined) => void;
}

export interface Settings {
  url: string;
  /** goodbot's Unix socket: nobody else can listen there while it is down. Without one, the port of `url`. */
  socket: string;
  token: string;
  tokenFile: string;
}

/** Why events cannot be sent to this address; empty when they can. */
export function wrongUrl(url: string): string {
  try {
    const parsed = new URL(url);
    if (parsed.protocol === "https:") return "";
    if (parsed.protocol === "http:" && LOCAL.includes(parsed.hostname)) return "";
  } catch {
    return "plugins.entries.goodbot.config.url is no address";
  }
  return "plugins.entries.goodbot.config.url must be on this machine, or https";
}

export class Link {
  private queue: Waiting[] = [];
  private flying: Waiting[] = [];
  private bytes = 0;
  private busy = false;
  private failing = false;
  private tries = 0;
  private timer: Timer | undefined;
  private told = false;
  private stopped = false;
  private lost = 0;

  constructor(
    private readonly settings: Settings,
    private readonly logger: Logger,
  ) {}

  /** Whether goodbot had the last events at once. */
  get well(): boolean {
    return !this.failing;
  }

  /**
   * Send an event after those that wait. Resolves with its receipt, or with nothing when goodbot has not
   * answered within `patience` ms: it is sent later, all the same. A command is not, but may be on its way.
   */
  send(event: Outgoing, patience = QUICK_MS): Promise<Receipt | undefined> {
    return new Promise((resolve) => {
      const size = new TextEncoder().encode(JSON.stringify(event)).length;
      const late = setTimeout(() => {
        if (event.type === "command" && !this.flying.includes(waiting)) this.take([waiting]);
        resolve(undefined);
      }, patience);
      const done = (receipt: Receipt | undefined) => {
        clearTimeout(late);
        resolve(receipt);
      };
      const waiting: Waiting = { event, size, done };
      this.queue.push(waiting);
      this.bytes += size;
      this.shed();
      void this.flush();
    });
  }

  /** Say that the plugin is there, so that what is wrong is in the log before anybody waits for it. */
  async hello(): Promise<void> {
    try {
      const response = await this.fetch("GET", "/v1/openclaw/ping", HELLO_MS);
      if (response.status === 200) return;
      throw new Error(explained(await response.text()) || `status ${response.status}`);
    } catch (error) {
      this.complain(error);
    }
  }

  start(): void {
    this.stopped = false;
    void this.flush();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** The oldest events go when too many wait. */
  private shed(): void {
    while (this.queue.length > 1 && (this.queue.length > MOST || this.bytes > MOST_BYTES)) {
      const [gone] = this.queue.splice(this.busy ? Math.min(BATCH, this.queue.length - 1) : 0, 1);
      if (!gone) return;
      this.bytes -= gone.size;
      gone.done(undefined);
      this.lost += 1;
    }
  }

  private batch(): Waiting[] {
    const batch: Waiting[] = [];
    let size = 0;
    for (const one of this.queue) {
      if (batch.length === BATCH || (batch.length > 0 && size + one.size > BATCH_BYTES)) break;
      batch.push(one);
      size += one.size;
      if (one.event.type === "command") break;
    }
    return batch;
  }

  private take(done: Waiting[]): void {
    this.queue = this.queue.filter((one) => !done.includes(one));
    this.bytes = this.queue.reduce((sum, one) => sum + one.size, 0);
  }

  private async flush(again = false): Promise<void> {
    if (this.busy || this.stopped) return;
    if (again) this.tries += 1;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      while (this.queue.length > 0) {
        const batch = (this.flying = this.batch());
        const receipts = await this.post(batch);
        this.take(batch);
        for (const one of batch) one.done(receipts.get(one.event.id));
        this.recovered();
      }
    } catch (error) {
      this.failed(error);
    } finally {
      this.flying = [];
      this.busy = false;
    }
  }

  /** What became of a batch. Throws when goodbot could not be asked, or may be asked again later. */
  private async post(batch: Waiting[]): Promise<Map<string, Receipt>> {
    const command = batch.some((one) => one.event.type === "command");
    const body = JSON.stringify({ events: batch.map((one) => one.event) });
    const response = await this.fetch("POST", PATH, command ? COMMAND_MS : QUICK_MS, body);
    const found = new Map<string, Receipt>();
    if (response.status === 200) {
      const { receipts } = object(await response.json());
      for (const one of Array.isArray(receipts) ? receipts.map(object) : []) {
        const id = text(one["id"]);
        found.set(id, { id, outcome: text(one["outcome"]), text: text(one["text"]) });
      }
      return found;
    }
    const said = explained(await response.text());
    if ([400, 413, 415, 422].includes(response.status)) {
      // It will be refused for ever: better that one is lost than that all wait behind it.
      if (batch.length > 1) return this.oneByOne(batch);
      this.logger.warn(`goodbot has refused an event (${batch[0]?.event.type}): ${said}`);
      return found;
    }
    throw new Error(said || `status ${response.status}`);
  }

  private async fetch(method: string, path: string, ms: number, body?: string) {
    const headers: Record<string, string> = { Authorization: `Bearer ${await this.token()}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const url = new URL(this.settings.url);
    if (this.settings.socket) {
      headers["Host"] = url.host;
      return bySocket(this.settings.socket, { method, path, headers, body, ms });
    }
    return fetch(url.origin + path, {
      method, headers, ...(body === undefined ? {} : { body }), redirect: "error",
      signal: AbortSignal.timeout(ms),
    });
  }

  private async oneByOne(batch: Waiting[]): Promise<Map<string, Receipt>> {
    const found = new Map<string, Receipt>();
    for (const one of batch) for (const [id, receipt] of await this.post([one])) found.set(id, receipt);
    return found;
  }

  /** Read anew each time, so that a token that was replaced is found. */
  private async token(): Promise<string> {
    if (this.settings.token || !this.settings.tokenFile) return this.settings.token;
    const file = await open(this.settings.tokenFile, "r");
    try {
      const { mode, size } = await file.stat();
      if (mode & 0o077) throw new Error(`${this.settings.tokenFile} can be read by others: chmod 600 it`);
      if (size > 1000) throw new Error(`${this.settings.tokenFile} holds no token`);
      return (await file.readFile("utf8")).trim();
    } finally {
      await file.close();
    }
  }

  private failed(error: unknown): void {
    this.failing = true;
    this.complain(error);
    const commands = this.queue.filter((one) => one.event.type === "command");
    this.take(commands); // nobody wants an old command to be done later
    for (const one of this.queue.concat(commands)) one.done(undefined);
    if (this.stopped || this.queue.length === 0) return;
    const wait = Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** Math.min(this.tries, 6));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush(true), wait);
    this.timer.unref();
  }

  /** One line in the gateway's log, until it is well again. */
  private complain(error: unknown): void {
    if (this.told) return;
    this.told = true;
    this.logger.warn(`goodbot does not answer (${reason(error)}); what it is to learn waits: goodbot run`);
  }

  private recovered(): void {
    this.failing = false;
    this.tries = 0;
    if (!this.told) return;
    this.told = false;
    const lost = this.lost ? `, but ${this.lost} were too many to keep` : "";
    this.logger.info(`goodbot answers again and has what waited${lost}`);
    this.lost = 0;
  }
}

function reason(error: unknown): string {
  const said = object(error instanceof Error ? { message: error.message } : {});
  return text(said["message"]).slice(0, 200) || "no reason";
}

function explained(body: string): string {
  try {
    return text(object(object(JSON.parse(body) as Json)["error"])["message"]).slice(0, 300);
  } catch {
    return "";
  }
}
