// SPDX-License-Identifier: Apache-2.0
// A run's messages, cut down to what is learnt from: roles, texts, calls of tools and their results.
import { object, text } from "./types.js";
const LONGEST = 400_000;
const LONGEST_ONE = 100_000;
/** The newest messages that fit, oldest first, without the last answer: that is what was asked. */
export function prompt(messages) {
    const kept = [];
    let room = LONGEST;
    for (const message of withoutAnswer(messages).reverse()) {
        const cut = reduced(object(message));
        if (!cut)
            continue;
        const size = JSON.stringify(cut).length;
        if (size > room)
            break;
        room -= size;
        kept.push(cut);
    }
    kept.reverse();
    while (kept.length > 0 && kept[0]?.["role"] === "toolResult")
        kept.shift(); // its call is gone
    return kept;
}
/** The text of the last message, if it is the agent's. */
export function answer(messages) {
    const last = object(messages[messages.length - 1]);
    return last["role"] === "assistant" ? texts(last["content"]).join("\n\n") : "";
}
function withoutAnswer(messages) {
    let end = messages.length;
    while (end > 0 && isAnswer(object(messages[end - 1])))
        end -= 1;
    return messages.slice(0, end);
}
function isAnswer(message) {
    return message["role"] === "assistant" && calls(message["content"]).length === 0;
}
function reduced(message) {
    const role = text(message["role"]);
    const content = texts(message["content"]).join("\n\n").slice(0, LONGEST_ONE);
    if (role === "assistant")
        return { role, content, calls: calls(message["content"]) };
    if (role === "toolResult") {
        return { role, content, call: text(message["toolCallId"]), name: text(message["toolName"]) };
    }
    return role === "user" || role === "system" ? { role, content } : undefined;
}
function parts(content) {
    return Array.isArray(content) ? content.map(object) : [];
}
function texts(content) {
    if (typeof content === "string")
        return content ? [content] : [];
    return parts(content)
        .filter((part) => part["type"] === "text" && text(part["text"]))
        .map((part) => text(part["text"]));
}
function calls(content) {
    return parts(content)
        .filter((part) => part["type"] === "toolCall")
        .map((part) => ({
        id: text(part["id"]),
        name: text(part["name"]),
        arguments: object(part["arguments"]),
    }));
}
