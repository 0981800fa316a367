// SPDX-License-Identifier: Apache-2.0
// Drawings: where something is on a platform's page, and the picture of a link for a phone's camera.

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 420;
const MENU_WIDTH = 164;
const ROW = 30;
const LETTER = 7.2; // about as wide as one is at 13 px

function draw(tag, properties, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

const words = (text, x, y, kind = "") => draw("text", { x, y, class: kind }, text);
const box = (kind, x, y, width, height, rx = 6) => draw("rect", { class: kind, x, y, width, height, rx });

// A page with its address, its menu, and what to look for on it: the last of these has a ring around it.
export function sketch(one, alt) {
  const left = one.menu.length ? MENU_WIDTH + 16 : 16;
  const height = Math.max(48 + one.menu.length * ROW + 12, one.field && one.press ? 152 : 120);
  const parts = [
    box("frame", 1, 1, WIDTH - 2, height - 2, 10), box("bar", 2, 2, WIDTH - 4, 30, 9),
    ...[16, 30, 44].map((cx) => draw("circle", { class: "dot", cx, cy: 17, r: 4 })), words(one.address, 60, 22, "address"),
  ];
  one.menu.forEach((entry, row) => {
    const y = 44 + row * ROW;
    if (entry === one.here) parts.push(box("here", 10, y, MENU_WIDTH - 10, ROW - 4));
    parts.push(words(entry, 20, y + 18, entry === one.here ? "" : "other"));
  });
  let y = 48;
  const room = WIDTH - left - 16;
  if (one.field) {
    parts.push(words(one.field, left, y + 12), box("field", left, y + 20, room, 30), words(one.value, left + 10, y + 40));
    if (!one.press) parts.push(box("ring", left - 4, y + 16, room + 8, 38, 10));
    y += 60;
  }
  if (one.press) {
    const wide = Math.min(room, one.press.length * LETTER + 28);
    parts.push(box("press", left, y, wide, 30, 15), words(one.press, left + 14, y + 20, "on-press"), box("ring", left - 5, y - 5, wide + 10, 40, 20));
  }
  return draw("svg", { class: "sketch", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": alt }, ...parts);
}

// Rows of 1 (dark) and 0 (light), as one path on white: a camera needs the contrast in the dark theme, too.
export function qr(rows, alt) {
  const size = rows.length;
  const path = rows.flatMap((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return draw("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": alt, "shape-rendering": "crispEdges" },
    draw("rect", { width: size, height: size, fill: "#fff" }), draw("path", { d: path, fill: "#000" }));
}
