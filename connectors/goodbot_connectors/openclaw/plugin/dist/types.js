// SPDX-License-Identifier: Apache-2.0
// What goes to goodbot, and the parts of OpenClaw's events that we read.
export function text(value) {
    if (typeof value === "string")
        return value;
    return typeof value === "number" && Number.isFinite(value) ? String(value) : "";
}
export function object(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
