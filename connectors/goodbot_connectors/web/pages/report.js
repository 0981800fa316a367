// SPDX-License-Identifier: Apache-2.0
// The report for owners: who taught what, which groups are liked less, how versions drift, what looks wrong.

import { get, post } from "/files/api.js";
import { banner, signedOut } from "/files/header.js";
import { percent, reach, shares, versionName } from "/files/chart.js";
import { button, el, find } from "/files/dom.js";
import { Flags } from "/files/flags.js";
import { Page } from "/files/page.js";

const FEW = 10;
const ENOUGH = 20; // of fewer ratings a share says little
const DIMENSIONS = {
  language: "Language of the question", topic: "Topic of the question", length: "Length of the answer", hour: "Time of the day", place: "Place",
};
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

class Report extends Page {
  #begun = false;
  #versions = null; // what the chart shows: drawn anew when the page gets wider

  ready() {
    find("#again").addEventListener("click", () => this.#make());
    addEventListener("resize", () => this.#versions && this.#chart());
  }

  async load() {
    if (!this.may.has("adapters")) return find("#count").replaceChildren("Owners of this bot see here who taught it what.");
    let seen = await get("/api/report");
    if (!seen.at && !seen.making && !this.#begun) { // while another owner's is made it waits for that
      this.#begun = true;
      seen = await post("/api/report", { do: "make" });
    }
    this.#begun ||= Boolean(seen.at);
    return this.#show(seen);
  }

  async #make(what = "make") {
    try {
      this.#show(await post("/api/report", { do: what }));
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      banner(problem.message);
    }
    return undefined;
  }

  #show({ at, parts, making, asking, done, of, trouble }) {
    const bar = find("#done");
    bar.hidden = !making;
    bar.value = of ? Math.min(1, done / of) : 0;
    for (const node of [find("#again"), find("#ask")]) if (node) node.disabled = making;
    find("#again").hidden = false;
    find("#state").classList.toggle("bad", Boolean(trouble));
    const told = at ? `Made ${moment.format(new Date(1000 * at))}. What came since is not in it.` : "What was made is no longer kept: make it anew.";
    const now = asking ? `Asking the version that answers, while nobody else waits: ${done} of ${of} questions …` : `Looking at the answers: ${done.toLocaleString()} so far …`;
    find("#state").textContent = making ? now : trouble || told;
    if (at) this.part("#parts", parts, () => this.#draw(parts));
    if (making) this.look();
  }

  #draw(parts) {
    const draws = { teachers: (one) => teachers(one), groups: (one) => groups(one), versions: (one) => this.#drift(one), pairs: (one) => this.#pairs(one), flags: (one) => new Flags(this, one).nodes };
    find("#parts").replaceChildren(...parts.map((one) => el("section", { class: "card", "aria-labelledby": `title-${one.name}`, "data-part": one.name },
      el("h2", { id: `title-${one.name}` }, one.title),
      ...(draws[one.name]?.(one) || one.lines.map((line) => el("p", { class: "line" }, line))))));
    if (this.#versions) this.#chart();
  }

  // How each version was liked, and what else changed.
  #drift({ data: { versions, apart, peak }, lines }) {
    const rated = versions.filter((one) => one.rated);
    this.#versions = rated.length ? rated.map((one) => ({ ...one, active: one.live, share: one.good / one.rated })) : null;
    if (!versions.length) return lines.map((line) => el("p", {}, line));
    return [
      el("div", { id: "drift" }),
      ...apart.map((one) => el("p", {}, `${versionName(one.version)} is liked ${one.share > one.before_share ? "more" : "less"} than ${versionName(one.before)}, by more than chance: ${percent(one.share)} against ${percent(one.before_share)}.`)),
      peak ? el("p", {}, `The highest liked share is ${percent(peak.share)}. ${versionName(peak.version)} was the first near it (95% of it), and has learnt from ${counted(peak.answers, "answer")}.`) : "",
      table("Each version", ["Version", "Liked", "Stars", "Answers", "Half are longer than", "Languages", "Own questions right", "Half waited up to", "95% waited up to", "Learnt from", "Memory of the training"], versions.map((one) => [
        `${versionName(one.version)}${one.live ? " (answers)" : ""}`, likedOf(one),
        one.stars === null ? "–" : `${one.stars.toFixed(1)} of ${one.starred.toLocaleString()}`, one.answers.toLocaleString(),
        one.median_length === null ? "–" : `${Math.round(one.median_length)} characters`,
        Object.entries(one.languages).map(([name, share]) => `${name} ${percent(share)}`).join(", ") || "–",
        one.right ? `${one.right[0]} of ${one.right[1]}` : "–",
        ...(one.seconds || [null, null]).map((seconds) => (seconds === null ? "–" : `${seconds.toFixed(1)} s`)),
        one.learnt_from ? counted(one.learnt_from, "answer") : "–", one.memory ? `${(one.memory / 1e9).toFixed(1)} GB` : "–"]))];
  }

  // Fixed questions: how like two answers are where one thing differs, and what was answered right.
  #pairs({ data: { versions, own, of, pairs, questions } }) {
    return [
      el("p", {}, "Each version can be asked the same questions: in pairs that differ in one thing, which should make no difference, and your own with right answers."),
      versions.length ? list([...versions].reverse(), (one) => [el("strong", {}, versionName(one.version)), reach({ low: 0, share: one.alike, high: one.alike }),
        el("span", {}, `${percent(one.alike)} of the words are in both answers`),
        el("span", { class: "meta" }, [`${counted(one.pairs, "pair")}: ${Object.entries(one.about).map(([about, share]) => `${about} ${percent(share)}`).join(", ")}`,
          one.longer ? `in ${one.longer} one answer is more than twice as long` : ""].filter(Boolean).join("; "))]) : el("p", {}, "No version has been asked yet."),
      ...[...own].reverse().map((one) => el("div", {}, `${versionName(one.version)} has ${one.right} of ${counted(one.asked, "own question")} right.`,
        one.wrong.length ? el("details", { class: "figures" }, el("summary", {}, "Not right"), el("ul", {}, ...one.wrong.map((text) => el("li", {}, text)))) : "")),
      pairs.length ? el("details", { class: "figures" }, el("summary", {}, `What ${versionName(of)} says, the least alike first`), ...pairs.map(pairOf)) : "",
      el("div", { class: "row" }, button(`Ask ${counted(questions, "question")} now`, { id: "ask", class: "chip small", onclick: () => this.#make("ask") }))];
  }

  #chart() {
    const place = find("#drift");
    place?.replaceChildren(shares(this.#versions, Math.max(240, place.clientWidth)));
  }
}

function pairOf({ about, question, one, other, said, other_said: otherSaid }) {
  const answer = (label, text) => el("div", {}, el("dt", { class: "label" }, label), el("dd", { class: "words" }, text || "(empty)"));
  return el("article", { class: "pair" }, el("h3", {}, `${about}: ${question}`), el("dl", {}, answer(one, said), answer(other, otherSaid)));
}

function teachers({ data: { version, answers, people, most }, lines }) {
  if (!version) return lines.map((line) => el("p", {}, line));
  return [
    el("p", {}, `${versionName(version)} has learnt from ${counted(answers, "answer")}.`),
    list(people, (one) => [el("strong", {}, nameOf(one.person)), reach({ low: 0, share: one.share, high: one.share }),
      el("span", {}, `${percent(one.share)} of what it learnt`),
      el("span", { class: "meta" }, `${counted(one.answers, "answer")}; of all that they rated liked ${one.good.toLocaleString()} of ${one.rated.toLocaleString()}`)]),
    most ? el("p", { class: "found" }, `${nameOf(most.person)} has taught more than half: ${percent(most.share)} (${percent(most.low)} to ${percent(most.high)}).`) : ""];
}

function groups({ data: { groups: all, compared, apart } }) {
  const found = apart.map((one) => el("li", { class: "found" },
    el("strong", {}, `${DIMENSIONS[one.by] || one.by}, ${one.group}: liked ${points(one)} than the others.`),
    ` ${percent(one.good / one.rated)} of ${one.rated.toLocaleString()} against ${percent(one.others_good / one.others_rated)}: more than chance. `,
    one.within_people ? "The ratings of single people show it, too." : "It may be who rated, not the answers: the ratings of single people do not show it."));
  const nothing = compared ? "No group is liked more or less than the others by more than chance."
    : `No group has ${ENOUGH} rated answers beside ${ENOUGH} others yet: nothing is compared.`;
  return [
    found.length ? el("ul", { class: "finds" }, ...found) : el("p", {}, nothing),
    compared ? el("p", { class: "count" }, `Compared: ${counted(compared, "group")}, by Fisher’s exact test, corrected for their number (Bonferroni). The line beside a share is its 95% interval (Wilson).`) : "",
    ...Object.entries(all).filter(([, rows]) => rows.length).flatMap(([by, rows]) => [el("h3", {}, DIMENSIONS[by] || by), list(rows, groupOf)])];
}

function groupOf(one) {
  const taught = Object.entries(one.taught).slice(0, 3).map(([who, share]) => `${nameOf(who)} ${percent(share)}`).join(", ");
  return [el("strong", {}, one.group), one.rated ? reach({ ...one, share: one.good / one.rated }) : el("span"), el("span", {}, likedOf(one)),
    taught ? el("span", { class: "meta" }, `taught by ${taught}`) : ""];
}

// The first few; all others behind a line that opens.
function list(rows, draw) {
  const of = (some) => el("ul", { class: "shares" }, ...some.map((one) => el("li", {}, ...draw(one))));
  if (rows.length <= FEW) return of(rows);
  return el("div", {}, of(rows.slice(0, FEW)),
    el("details", { class: "figures" }, el("summary", {}, `${(rows.length - FEW).toLocaleString()} more`), of(rows.slice(FEW))));
}

// On a phone it is wider than the page: it scrolls by itself, by keyboard too.
function table(title, heads, rows) {
  return el("details", { class: "figures" }, el("summary", {}, title),
    el("div", { class: "wide-table", role: "region", "aria-label": title, tabindex: "0" },
      el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, ...[...rows].reverse().map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((said) => el("td", {}, said))))))));
}

function likedOf({ good, rated, low, high }) {
  if (!rated) return "not rated";
  if (rated < ENOUGH) return `liked ${good} of ${rated}`;
  return `liked ${percent(good / rated)} (${percent(low)} to ${percent(high)}) of ${rated.toLocaleString()}`;
}

function points({ difference, low, high }) {
  const [from, to] = [Math.abs(low), Math.abs(high)].sort((one, two) => one - two);
  const whole = (share) => Math.round(100 * share);
  return `${whole(Math.abs(difference))} points ${difference < 0 ? "less" : "more"} (${whole(from)} to ${whole(to)})`;
}

function nameOf(who) {
  return who.startsWith("judge:") ? "a judge" : who;
}

function counted(count, what) {
  return `${count.toLocaleString()} ${count === 1 ? what : `${what}s`}`;
}

new Report().start();
