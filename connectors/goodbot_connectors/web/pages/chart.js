// SPDX-License-Identifier: Apache-2.0
// Small pictures of figures, as SVG: a ring, shares with their bands, and how a loss goes.

import { el } from "/files/dom.js";
import { figure, locale, say } from "/files/texts.js";

function shape(tag, properties = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

const RADIUS = 52;

// `have` of `need` ratings, as a ring that fills.
export function ring(have, need) {
  const around = 2 * Math.PI * RADIUS;
  const filled = around * Math.min(1, need ? have / need : 0);
  const circle = (kind, more = {}) => shape("circle", { class: kind, cx: 64, cy: 64, r: RADIUS, ...more });
  return shape("svg", { viewBox: "0 0 128 128", role: "img", "aria-label": say("page_ring", { have, need }) },
    circle("ring-all"),
    filled ? circle("ring-done", { "stroke-dasharray": `${filled} ${around}`, transform: "rotate(-90 64 64)" }) : "",
    shape("text", { class: "ring-have", x: 64, y: 68 }, figure(have)),
    shape("text", { class: "ring-need", x: 64, y: 88 }, say("page_ring_of", { need })));
}

const CURVE = { wide: 240, high: 56, edge: 5 };

// The loss of a training's steps, `[step, loss]` each, from the left edge to the right one.
export function curve(points) {
  const { wide, high, edge } = CURVE;
  const [steps, losses] = [0, 1].map((n) => points.map((point) => point[n]));
  const [least, most] = [Math.min(...losses), Math.max(...losses)];
  const x = (step) => edge + (wide - 2 * edge) * ((step - steps[0]) / (steps.at(-1) - steps[0] || 1));
  const y = (loss) => high - edge - (high - 2 * edge) * (most > least ? (loss - least) / (most - least) : 0.5);
  return shape("svg", { class: "chart curve", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": say("page_curve") },
    shape("polyline", { class: "chart-line", points: points.map(([step, loss]) => `${x(step)},${y(loss)}`).join(" ") }),
    shape("circle", { class: "chart-point", cx: x(steps.at(-1)), cy: y(losses.at(-1)), r: 3.5 }));
}

// The same in figures.
export function curveTold(points) {
  const [[begin, first], [end, last]] = [points[0], points.at(-1)];
  return say("page_curve_told", { first, begin, last, end });
}

const HIGH = 200;
const LEFT = 44;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 30;
const LABEL = 52; // so wide is the name of a version, with space around it

const shown = new Intl.NumberFormat(locale, { style: "percent" });

export function percent(share) {
  return shown.format(share);
}

export function versionName(version) {
  return version ? `v${version}` : say("page_base");
}

// The liked share of each version, `width` pixels wide; the band is where the true share lies, 95 times of 100.
export function shares(versions, width) {
  const step = (width - LEFT - RIGHT) / versions.length;
  const x = (n) => LEFT + step * (n + 0.5);
  const y = (share) => TOP + (HIGH - TOP - BOTTOM) * (1 - share);
  const points = (values) => values.map(([n, share]) => `${x(n)},${y(share)}`).join(" ");
  const every = Math.ceil(LABEL / step);
  const told = versions.map((one) => `${versionName(one.version)} ${percent(one.share)}`).join(", ");
  const lines = [0, 0.5, 1].map((share) => shape("g", {},
    shape("line", { class: "chart-grid", x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share) }),
    shape("text", { class: "chart-share", x: LEFT - 8, y: y(share) + 4 }, percent(share))));
  const band = versions.length > 1 ? [
    shape("polygon", { class: "chart-band", points: points([
      ...versions.map((one, n) => [n, one.high]), ...versions.map((one, n) => [n, one.low]).reverse()]) }),
    shape("polyline", { class: "chart-line", points: points(versions.map((one, n) => [n, one.share])) })] : [];
  const marks = versions.map((one, n) => shape("g", {},
    shape("line", { class: "chart-reach", x1: x(n), x2: x(n), y1: y(one.low), y2: y(one.high) }),
    shape("circle", { class: one.active ? "chart-point active" : "chart-point", cx: x(n), cy: y(one.share), r: one.active ? 6 : 4.5 }),
    (versions.length - 1 - n) % every ? "" : shape("text", { class: one.active ? "chart-name active" : "chart-name", x: x(n), y: HIGH - 8 },
      versionName(one.version))));
  return shape("svg", { class: "chart", viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH, role: "img",
    "aria-label": say("page_liked_shares", { told }) }, ...lines, ...band, ...marks);
}

// One share and where the true one lies; the figures stand beside it.
export function reach({ low, share, high }) {
  const x = (part) => 6 + 108 * part;
  return shape("svg", { class: "chart reach", viewBox: "0 0 120 16", width: 120, height: 16, "aria-hidden": "true" },
    shape("line", { class: "chart-grid", x1: x(0), x2: x(1), y1: 8, y2: 8 }),
    shape("line", { class: "chart-reach", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
    shape("circle", { class: "chart-point", cx: x(share), cy: 8, r: 4.5 }));
}

export const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });

// The same in words and figures.
export function sharesTable(versions) {
  const heads = ["page_version_head", "page_made", "page_liked", "page_between"].map((key) => say(key));
  const name = ({ version }) => (version ? versionName(version) : say("page_base_model"));
  const rows = [...versions].reverse().map((one) => el("tr", {},
    el("th", { scope: "row" }, one.active ? say("page_answers_mark", { version: name(one) }) : name(one)),
    el("td", {}, one.made_at ? day.format(new Date(1000 * one.made_at)) : "–"),
    el("td", {}, say("page_share_of", { share: percent(one.share), good: one.good, rated: one.rated })),
    el("td", {}, say("page_bounds", { low: percent(one.low), high: percent(one.high) }))));
  return el("details", { class: "figures" }, el("summary", {}, say("page_as_table")),
    el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...rows)));
}
