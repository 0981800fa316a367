// SPDX-License-Identifier: Apache-2.0
// The catalogue's words, with what belongs in their places.

export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}
