// SPDX-License-Identifier: Apache-2.0
// A map that keeps its newest entries only, so that nothing here grows for ever.
export class Recent {
    most;
    entries = new Map();
    constructor(most) {
        this.most = most;
    }
    get(key) {
        return this.entries.get(key);
    }
    has(key) {
        return this.entries.has(key);
    }
    set(key, value) {
        this.entries.delete(key);
        this.entries.set(key, value);
        if (this.entries.size > this.most) {
            for (const oldest of this.entries.keys()) {
                this.entries.delete(oldest);
                break;
            }
        }
    }
    delete(key) {
        this.entries.delete(key);
    }
    clear() {
        this.entries.clear();
    }
    keys() {
        return [...this.entries.keys()];
    }
    values() {
        return [...this.entries.values()];
    }
}
