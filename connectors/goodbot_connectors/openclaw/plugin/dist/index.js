// SPDX-License-Identifier: Apache-2.0
// goodbot's plugin for OpenClaw. It sees what was asked and answered, puts buttons under the answers, and
// tells goodbot on this machine. No handler here waits for goodbot before an answer goes out.
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import { peekSystemEventEntries } from "openclaw/plugin-sdk/system-event-runtime";
import { Answers } from "./answers.js";
import { Link, wrongUrl } from "./link.js";
import { ofMessage, ofRun } from "./places.js";
import { Ratings, NAMESPACE, buttons } from "./ratings.js";
import { parse } from "./reactions.js";
import { Recent } from "./recent.js";
import * as transcript from "./transcript.js";
import { object, text, } from "./types.js";
const BUTTON_CHANNELS = ["telegram", "discord", "slack"];
const POLL_MS = 1_000;
const UNNAMED_MS = 10_000;
const LONGEST_SYSTEM = 200_000;
/** Is part of what instances are shared by: see `shared`. */
const VERSION = "0.1.0";
class Plugin {
    logger;
    config;
    running = 0;
    answers = new Answers();
    sessions = new Recent(200);
    seen = new Recent(2000);
    timers = new Set();
    link;
    ratings;
    poll;
    constructor(logger, config) {
        this.logger = logger;
        this.config = config;
        const setting = (name) => text(config[name]).trim();
        this.link = new Link({
            url: setting("url"), socket: setting("socket"), token: setting("token"),
            tokenFile: setting("tokenFile"),
        }, logger);
        this.ratings = new Ratings(this.answers, this.link, logger, (answer, message) => this.capture(answer, message));
    }
    register(api) {
        const on = (hook, handler) => api.on(hook, (event, context) => {
            try {
                return handler(object(event), object(context));
            }
            catch (error) {
                this.logger.warn(`goodbot: ${hook}: ${error instanceof Error ? error.message : "failed"}`);
                return undefined;
            }
        });
        on("message_received", (event, context) => this.received(event, context));
        on("llm_input", (event, context) => this.asked(event, context));
        on("agent_end", (event, context) => this.ended(event, context));
        on("llm_output", (event, context) => this.answered(event, context));
        on("reply_payload_sending", (event, context) => this.sending(event, context));
        on("message_sent", (event, context) => this.sent(event, context));
        for (const channel of BUTTON_CHANNELS) {
            api.registerInteractiveHandler({
                channel,
                namespace: NAMESPACE,
                handler: (press) => this.ratings.press({ ...press, channel: press.channel || channel }),
            });
        }
        api.registerCommand({
            name: "rl",
            description: "Rate answers: good, bad, undo, why, status",
            acceptsArgs: true,
            requireAuth: true,
            handler: (command) => this.ratings.command(command, false),
        });
        api.registerCommand({
            name: "rladmin",
            description: "For the owner: train, rollback, people",
            acceptsArgs: true,
            requireAuth: true,
            requiredScopes: ["operator.admin"],
            handler: (command) => this.ratings.command(command, true),
        });
        api.registerService({ id: "goodbot-reactions", start: () => this.start(), stop: () => this.stop() });
    }
    start() {
        this.running += 1;
        if (this.running > 1)
            return;
        this.link.start();
        this.poll = setInterval(() => this.look(), POLL_MS);
        this.poll.unref();
        void this.link.hello();
    }
    stop() {
        this.running -= 1;
        if (this.running > 0)
            return;
        clearInterval(this.poll);
        for (const timer of this.timers)
            clearTimeout(timer);
        this.timers.clear();
        this.answers.deaf();
        this.link.stop();
    }
    received(event, context) {
        const session = text(context.sessionKey) || text(event["sessionKey"]);
        if (session)
            this.sessions.set(session, true);
        const place = ofMessage(context, event["from"]);
        if (!place)
            return;
        this.answers.knows(place);
        // Its run may come late or never: it waits its turn, or goes into one that is under way, even somebody
        // else's. A command asks for no answer, and on some channels `/rl good` comes by here itself.
        if (!text(event["content"]).trimStart().startsWith("/")) {
            this.answers.passed(place, text(context.senderId) || text(event["senderId"]));
        }
    }
    /** The answer of a run that a person in a chat has set off; nothing for any other run. */
    answerOf(event, context) {
        const run = text(event["runId"]) || text(context.runId);
        const place = ofRun(context);
        const sender = text(context.senderId);
        if (!run || !place || !sender || text(context.trigger) !== "user")
            return undefined;
        if (context.sessionKey)
            this.sessions.set(context.sessionKey, true);
        const answer = this.answers.of(run, place, sender);
        answer.trace = text(context.trace?.traceId) || answer.trace;
        return answer;
    }
    asked(event, context) {
        const answer = this.answerOf(event, context);
        if (answer && this.config["systemPrompt"] === true) {
            answer.system = text(event["systemPrompt"]).slice(0, LONGEST_SYSTEM);
        }
    }
    /** Comes before `llm_output`; either may be the first. */
    ended(event, context) {
        const answer = this.answerOf(event, context);
        const messages = event["messages"];
        if (!answer || event["success"] !== true || !Array.isArray(messages))
            return;
        answer.messages = transcript.prompt(messages);
        answer.text = transcript.answer(messages) || answer.text;
        this.complete(answer);
    }
    answered(event, context) {
        const answer = this.answerOf(event, context);
        if (!answer)
            return;
        const texts = event["assistantTexts"];
        answer.text ||= Array.isArray(texts) ? text(texts[texts.length - 1]) : "";
        answer.model = text(event["resolvedRef"]) || text(event["model"]);
        this.complete(answer);
    }
    /** All is known of it but the message that it becomes; one that becomes none is kept without. */
    complete(answer) {
        if (!answer.text || answer.messages.length === 0 || !answer.model || answer.name)
            return;
        const timer = setTimeout(() => {
            this.timers.delete(timer);
            this.capture(answer, "");
        }, UNNAMED_MS);
        timer.unref();
        this.timers.add(timer);
    }
    sending(event, context) {
        const answer = this.answers.run(text(event["runId"]) || text(context.runId));
        const payload = object(event["payload"]);
        const words = text(payload["text"]);
        const place = ofMessage(context, "");
        if (!answer?.text || !words.trim() || !place)
            return undefined;
        answer.place.group = answer.place.group || place.group;
        this.answers.expect(place, words, answer.run, Date.now());
        const wanted = this.config["buttons"] !== false &&
            (!answer.place.group || this.config["groupButtons"] !== false);
        if (text(event["kind"]) !== "final" || !wanted || !BUTTON_CHANNELS.includes(place.channel))
            return undefined;
        const presentation = object(payload["presentation"]);
        const blocks = Array.isArray(presentation["blocks"]) ? presentation["blocks"] : [];
        return { payload: { ...payload, presentation: { ...presentation, blocks: [...blocks, buttons(answer)] } } };
    }
    sent(event, context) {
        const place = ofMessage(context, event["to"]);
        const message = text(event["messageId"]);
        if (!place || !message || event["success"] !== true)
            return;
        const answer = this.answers.sent(place, text(event["content"]));
        if (answer)
            this.capture(answer, message);
    }
    /** Tell goodbot of an answer, once; a message that it was sent as later becomes one more name. */
    capture(answer, message) {
        if (!answer.text || answer.messages.length === 0)
            return;
        const { place, sender, run } = answer;
        if (answer.name) {
            if (!message || this.answers.named(place, message) === answer.name)
                return;
            this.answers.name(answer, message);
            void this.link.send({
                id: `named:${run}:${message}`, type: "named", at: Date.now(), ...place, sender, message,
                name: answer.name,
            });
            return;
        }
        answer.name = message || `run:${answer.key}`;
        if (message)
            this.answers.name(answer, message);
        const system = answer.system ? [{ role: "system", content: answer.system }] : [];
        void this.link.send({
            id: `capture:${run}`, type: "capture", at: Date.now(), ...place, sender, name: answer.name,
            messages: [...system, ...answer.messages], answer: answer.text, model: answer.model,
            trace: answer.trace,
        });
        answer.messages = answer.messages.slice(-1); // sent: the rest need not stay in memory
        answer.system = "";
    }
    /** Read what the channels have noted for the next prompts; nothing is taken away from there. */
    look() {
        for (const session of this.sessions.keys()) {
            for (const entry of peekSystemEventEntries(session)) {
                const id = text(entry.id);
                if (!id || this.seen.has(id))
                    continue;
                this.seen.set(id, true);
                const reaction = parse(entry.contextKey);
                if (reaction)
                    this.ratings.react(id, reaction);
            }
        }
    }
}
/**
 * The one plugin of this process. The gateway registers it more than once, each time from a copy of this
 * module of its own, and calls the hooks of agents on one and those of messages on another.
 */
function shared(api, config) {
    const name = Symbol.for("goodbot.openclaw");
    const host = globalThis;
    const all = (host[name] ??= new Recent(3));
    const which = `${VERSION} ${JSON.stringify(config)}`;
    const found = all.get(which) ?? new Plugin(api.logger, config);
    all.set(which, found);
    return found;
}
export default definePluginEntry({
    id: "goodbot",
    name: "goodbot",
    description: "👍 and 👎 under each answer: goodbot learns from them.",
    register(api) {
        const config = object(api.pluginConfig);
        if (!text(config["url"]) || wrongUrl(text(config["url"]))) {
            const wrong = wrongUrl(text(config["url"])) || "it does not know where goodbot is";
            api.logger.warn(`goodbot's plugin does nothing: ${wrong} (goodbot connect openclaw sets it up)`);
            return;
        }
        shared(api, config).register(api);
    },
});
