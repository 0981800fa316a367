// SPDX-License-Identifier: Apache-2.0
// Which answer is which: runs of the agent, the messages that they became, and who they were for.
// Nothing here is ever guessed: what two answers could be is no answer.
import { key } from "./places.js";
import { Recent } from "./recent.js";
const EXPECTED_MS = 120_000;
export function runKey(run) {
    return run.replace(/[^0-9A-Za-z]/g, "").slice(0, 20);
}
function whose(place, sender) {
    return key(place.channel, place.account, place.chat, sender);
}
export class Answers {
    runs = new Recent(500);
    byKey = new Recent(500);
    byMessage = new Recent(2000);
    /** The newest run of each person in each chat, answered or not; none if that is not known. */
    newest = new Recent(1000);
    accounts = new Recent(50);
    expected = [];
    /** The answer of a run; it begins when the run is first heard of. */
    of(run, place, sender) {
        let found = this.runs.get(run);
        if (!found) {
            found = {
                run, key: runKey(run), place, sender, trace: "", model: "", system: "", messages: [],
                text: "", name: "", shown: false,
            };
            this.runs.set(run, found);
            this.byKey.set(found.key, found);
            this.newest.set(whose(place, sender), found);
            this.knows(place);
        }
        return found;
    }
    run(run) {
        return this.runs.get(run);
    }
    pressed(runKey) {
        return this.byKey.get(runKey);
    }
    /** An answer's text is about to be sent there. */
    expect(place, content, run, now) {
        this.expected = this.expected.filter((one) => now - one.at < EXPECTED_MS).slice(-199);
        this.expected.push({ place, content, run, at: now });
    }
    /** The run whose text a message of ours was. None when two runs had the same words on their way: neither then. */
    sent(place, content) {
        const same = this.expected.filter((one) => one.content === content &&
            one.place.channel === place.channel &&
            one.place.account === place.account &&
            one.place.chat === place.chat);
        const first = same[0];
        if (!first)
            return undefined;
        const one = same.every((other) => other.run === first.run);
        // Of several runs none is expected any more: the next message would be joined by chance.
        const gone = one ? [first] : same;
        this.expected = this.expected.filter((other) => !gone.includes(other));
        return one ? this.runs.get(first.run) : undefined;
    }
    /** A message has turned out to be (part of) this answer. */
    name(answer, message) {
        const { channel, account, chat } = answer.place;
        this.byMessage.set(key(channel, account, chat, message), answer.name);
        this.byMessage.set(key(channel, account, message), chat);
        answer.shown = true;
        // Out after a newer one: now either may be the last that they see.
        if (this.last(answer.place, answer.sender) !== answer)
            this.passed(answer.place, answer.sender);
    }
    /** What goodbot knows a message by: an answer's name, else the message's own id. */
    named(place, message) {
        return this.byMessage.get(key(place.channel, place.account, place.chat, message)) || message;
    }
    /** The chat that a message of ours is in, where the channel does not say it. */
    chatOf(channel, account, message) {
        return this.byMessage.get(key(channel, account, message)) ?? "";
    }
    /** The answer of this person's newest run in this chat, if it is there: never that of an older one. */
    last(place, sender) {
        const newest = this.newest.get(whose(place, sender));
        return newest?.shown ? newest : undefined;
    }
    /** The answer that this person has is no longer the one they must mean; one still being written will be. */
    passed(place, sender) {
        if (this.last(place, sender))
            this.newest.delete(whose(place, sender));
    }
    /** Nothing is heard for a while: afterwards nobody's newest run is known. */
    deaf() {
        this.newest.clear();
    }
    knows(place) {
        const known = this.accounts.get(place.channel) ?? new Set();
        if (known.size < 20)
            known.add(place.account);
        this.accounts.set(place.channel, known);
    }
    /** Our accounts on a channel, as far as they have been seen. */
    accountsOf(channel) {
        return [...(this.accounts.get(channel) ?? [])];
    }
}
