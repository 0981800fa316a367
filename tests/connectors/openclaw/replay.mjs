// SPDX-License-Identifier: Apache-2.0
// Plays what the real gateway has called a plugin with into our compiled plugin, with a stand-in for
// goodbot and for the gateway. Reads {"plugin", "config", "notes", "steps", "down"} from stdin.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { plugin, config, steps, notes = [], down = false } = JSON.parse(readFileSync(0, "utf8"));
const out = { posts: [], results: [], log: [], told: [], commands: [], channels: [] };
const hooks = {};
const commands = {};
const handlers = {};
let service;
let away = down;

globalThis.fetch = async (url, options) => {
  if (away) throw new Error("connect ECONNREFUSED");
  const events = options.body ? JSON.parse(options.body).events : [];
  out.posts.push({ url, method: options.method, authorization: options.headers.Authorization, events });
  const receipts = events.map(({ id }) => ({ id, outcome: "accepted", text: "Done." }));
  return { status: 200, json: async () => ({ receipts }), text: async () => "" };
};
globalThis.openclawNotes = notes;

const api = {
  registrationMode: "full",
  pluginConfig: config,
  logger: { info: (text) => out.log.push(text), warn: (text) => out.log.push(text) },
  on: (name, handler) => (hooks[name] = handler),
  registerCommand: (command) => {
    commands[command.name] = command.handler;
    out.commands.push({ ...command, handler: undefined });
  },
  registerInteractiveHandler: (one) => {
    handlers[one.channel] = one.handler;
    out.channels.push(one.channel);
  },
  registerService: (one) => (service = one),
};
const entry = (await import(pathToFileURL(`${plugin}/dist/index.js`))).default;
entry.register(api);
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

for (const step of steps) {
  const [kind, name, ...rest] = step;
  let result = null;
  if (kind === "hook") result = hooks[name]?.(...rest);
  else if (kind === "press") {
    const respond = {
      reply: async (said) => void out.told.push(said),
      editButtons: async (said) => void out.told.push(said),
    };
    result = await handlers[name]({ ...rest[0], respond });
  } else if (kind === "command") result = await commands[name](rest[0]);
  else if (kind === "up") away = false;
  else if (kind === "start") service.start();
  else if (kind === "stop") service.stop();
  else if (kind === "wait") await new Promise((resolve) => setTimeout(resolve, name));
  if (kind !== "hook" || name !== "reply_payload_sending") await settled();
  out.results.push(result ?? null);
}
service?.stop();
process.stdout.write(JSON.stringify(out));
