// SPDX-License-Identifier: Apache-2.0
// What we use of OpenClaw and of Node, written down here so that nothing has to be installed to
// compile it. Everything is optional that OpenClaw has ever been seen to leave out.

declare module "openclaw/plugin-sdk/plugin-entry" {
  export function definePluginEntry<T>(entry: T): T;
}

declare module "openclaw/plugin-sdk/system-event-runtime" {
  export function peekSystemEventEntries(
    sessionKey: string,
  ): Array<{ id?: string; ts?: number; contextKey?: string | null }>;
}

declare module "node:fs/promises" {
  export function open(path: string, flags: string): Promise<{
    stat(): Promise<{ mode: number; size: number; isFile(): boolean }>;
    readFile(encoding: "utf8"): Promise<string>;
    close(): Promise<void>;
  }>;
}

declare module "node:http" {
  interface Response {
    readonly statusCode?: number;
    setEncoding(encoding: "utf8"): void;
    on(event: "data", told: (part: string) => void): void;
    on(event: "error", told: (error: Error) => void): void;
    on(event: "end", told: () => void): void;
  }
  export function request(
    options: {
      socketPath: string;
      method: string;
      path: string;
      headers: Record<string, string>;
      agent: false;
      signal: AbortSignal;
    },
    answered: (response: Response) => void,
  ): { on(event: "error", told: (error: Error) => void): void; end(body?: string): void };
}

declare module "node:crypto" {
  export function randomUUID(): string;
}

interface Timer {
  unref(): void;
}
declare function setTimeout(run: () => void, ms: number): Timer;
declare function clearTimeout(timer: Timer | undefined): void;
declare function setInterval(run: () => void, ms: number): Timer;
declare function clearInterval(timer: Timer | undefined): void;
declare class AbortSignal {
  static timeout(ms: number): AbortSignal;
}
declare class URL {
  constructor(url: string);
  readonly protocol: string;
  readonly host: string;
  readonly hostname: string;
  readonly origin: string;
}
declare class TextEncoder {
  encode(text: string): { readonly length: number };
}
declare function fetch(
  url: string,
  options: {
    method: string;
    headers: Record<string, string>;
    body?: string;
    redirect: "error";
    signal: AbortSignal;
  },
): Promise<{ readonly status: number; json(): Promise<unknown>; text(): Promise<string> }>;
