// SPDX-License-Identifier: Apache-2.0
// The report for owners: who taught what, which groups are liked less, how versions drift, what looks wrong.

import { get, post } from "/files/api.js";
import { banner, signedOut } from "/files/header.js";
import { percent, reach, shares, versionName } from "/files/chart.js";
import { button, el, find, latecomer } from "/files/dom.js";
import { Flags } from "/files/flags.js";
import { Page } from "/files/page.js";
import { figure, listed, locale, say } from "/files/texts.js";

const FEW = 10;
const QUEUE = 20; // answers that are rated in one go
const ENOUGH = 20; // of fewer ratings a share says little
const DIMENSIONS = { language: "page_by_language", topic: "page_by_topic", length: "page_by_length", hour: "page_by_hour", place: "page_place" };
const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const tenths = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const waited = new Intl.NumberFormat(locale, { style: "unit", unit: "second", unitDisplay: "narrow", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const held = new Intl.NumberFormat(locale, { style: "unit", unit: "gigabyte", minimumFractionDigits: 1, maximumFractionDigits: 1 });

class Report extends Page {
  #begun = false;
  #versions = null; // what the chart shows: drawn anew when the page gets wider

  ready() {
    find("#again").addEventListener("click", () => this.#make());
    addEventListener("resize", () => this.#versions && this.#chart());
  }

  async load() {
    if (!this.may.has("adapters")) return find("#count").replaceChildren(say("page_report_owners"));
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
    const told = at ? say("page_report_made", { when: moment.format(new Date(1000 * at)) }) : say("page_report_gone");
    const now = asking ? say("page_report_asking", { done, of }) : say("page_report_looking", { done });
    find("#state").textContent = making ? now : trouble || told;
    if (at) this.part("#parts", parts, () => this.#draw(parts));
    if (making) this.look();
  }

  #draw(parts) {
    const draws = { teachers: (one) => teachers(one), groups: (one) => groups(one), versions: (one) => this.#drift(one), pairs: (one) => this.#pairs(one), flags: (one) => new Flags(this, one).nodes, predicted: (one) => this.#predicted(one) };
    find("#parts").replaceChildren(...parts.map((one) => el("section", { class: "card", "aria-labelledby": `title-${one.name}`, "data-part": one.name },
      el("h2", { id: `title-${one.name}` }, one.title),
      ...(draws[one.name]?.(one) || one.lines.map((line) => el("p", { class: "line" }, line))))));
    if (this.#versions) this.#chart();
  }

  // How each version was liked, and what else changed.
  #drift({ data: { versions, apart, peak, names = {} }, lines }) {
    const rated = versions.filter((one) => one.rated);
    this.#versions = rated.length ? rated.map((one) => ({ ...one, active: one.live, share: one.good / one.rated })) : null;
    if (!versions.length) return lines.map((line) => el("p", {}, line));
    return [
      el("div", { id: "drift" }),
      ...apart.map((one) => el("p", {}, say(one.share > one.before_share ? "page_more_liked" : "page_less_liked", {
        version: versionName(one.version), before: versionName(one.before), share: percent(one.share), other: percent(one.before_share),
      }))),
      peak ? el("p", {}, say("page_peak", { share: percent(peak.share), version: versionName(peak.version), answers: peak.answers })) : "",
      table(say("page_each_version"), HEADS.map((head) => say(head)), versions.map((one) => rowOf(one, names)))];
  }

  // Fixed questions: how like two answers are where one thing differs, and what was answered right.
  #pairs({ data: { versions, own, of, pairs, questions, names = {} } }) {
    return [
      el("p", {}, say("page_pairs_how")),
      versions.length ? list([...versions].reverse(), (one) => alikeOf(one, names)) : el("p", {}, say("page_none_asked")),
      ...[...own].reverse().map(({ version, right, asked, wrong }) => el("div", {}, say("page_own_count", { version: versionName(version), right, asked }),
        wrong.length ? el("details", { class: "figures" }, el("summary", {}, say("page_not_right")), el("ul", {}, ...wrong.map((text) => el("li", {}, text)))) : "")),
      pairs.length ? el("details", { class: "figures" }, el("summary", {}, say("page_what_says", { version: versionName(of) })), ...pairs.map((one) => pairOf(one, names))) : "",
      el("div", { class: "row" }, button(say("page_ask_now", { count: questions }), { id: "ask", class: "chip small", onclick: () => this.#make("ask") }))];
  }

  // How good the predictions are, which ratings they doubt, and which answers to ask about first.
  #predicted({ data, lines }) {
    if (!data.tells) return lines.map((line) => el("p", {}, line));
    return [
      el("p", {}, lines[0]), el("p", { class: "count" }, lines[1]),
      list(data.bins, (one) => [el("strong", {}, say("page_predict_share", { share: percent(one.expected) })), reach({ ...one, share: one.good / one.answers }),
        el("span", {}, say("page_predict_good", { share: percent(one.good / one.answers), low: percent(one.low), high: percent(one.high), count: one.answers }))]),
      ...new Flags(this, { data }, say("page_predict_first")).nodes,
      data.ask.length ? el("p", {}, say("page_predict_expected", { count: data.unrated, good: Math.round(data.expected) }), " ",
        latecomer(say("page_predict_queue", { count: Math.min(QUEUE, data.ask.length) }), { class: "chip small", onclick: ({ target }) => this.#queue(target, data.ask) })) : "",
      el("p", { class: "told-line", role: "status", tabindex: "-1" }),
      el("p", { class: "count" }, lines.at(-1))];
  }

  async #queue(from, ids) {
    const told = find(".told-line", from.closest("section"));
    from.disabled = true;
    try {
      told.textContent = (await post("/api/queues", { do: "make", name: say("page_predict_queue_name"), turns: ids.slice(0, QUEUE), newest: 0, shared: [["all", ""]] })).told;
    } catch (problem) {
      if (problem.status === 401) return signedOut();
      told.textContent = problem.message;
      from.disabled = false;
    }
    told.focus();
    return undefined;
  }

  #chart() {
    const place = find("#drift");
    place?.replaceChildren(shares(this.#versions, Math.max(240, place.clientWidth)));
  }
}

const HEADS = ["page_version_head", "page_liked", "page_stars", "page_answers_head", "page_half_longer", "page_languages", "page_own_right",
  "page_half_waited", "page_most_waited", "page_learnt_from", "page_training_memory"];

function rowOf(one, names) {
  const version = versionName(one.version);
  return [
    one.live ? say("page_answers_mark", { version }) : version, likedOf(one),
    one.stars === null ? "–" : `${tenths.format(one.stars)} (${figure(one.starred)})`, figure(one.answers),
    one.median_length === null ? "–" : say("page_characters", { count: Math.round(one.median_length) }),
    listed(...Object.entries(one.languages).map(([name, share]) => `${named(names, name)} ${percent(share)}`)) || "–",
    one.right ? `${figure(one.right[0])} / ${figure(one.right[1])}` : "–",
    ...(one.seconds || [null, null]).map((seconds) => (seconds === null ? "–" : waited.format(seconds))),
    one.learnt_from ? say("page_answers_count", { count: one.learnt_from }) : "–", one.memory ? held.format(one.memory / 1e9) : "–"];
}

function alikeOf(one, names) {
  const about = listed(...Object.entries(one.about).map(([name, share]) => `${named(names, name)} ${percent(share)}`));
  const meta = [say("page_pairs_count", { count: one.pairs }), about, one.longer ? say("page_twice_long", { count: one.longer }) : ""];
  return [el("strong", {}, versionName(one.version)), reach({ low: 0, share: one.alike, high: one.alike }),
    el("span", {}, say("page_alike", { share: percent(one.alike) })), el("span", { class: "meta" }, meta.filter(Boolean).join(" · "))];
}

function pairOf({ about, question, one, other, said, other_said: otherSaid }, names) {
  const answer = (label, text) => el("div", {}, el("dt", { class: "label" }, label), el("dd", { class: "words" }, text || say("page_empty")));
  return el("article", { class: "pair" }, el("h3", {}, `${named(names, about)} · ${question}`), el("dl", {}, answer(one, said), answer(other, otherSaid)));
}

function teachers({ data: { version, answers, people, most }, lines }) {
  if (!version) return lines.map((line) => el("p", {}, line));
  return [
    el("p", {}, say("page_report_learnt", { version: versionName(version), answers })),
    list(people, (one) => [el("strong", {}, nameOf(one.person)), reach({ low: 0, share: one.share, high: one.share }),
      el("span", {}, say("page_part_taught", { share: percent(one.share) })),
      el("span", { class: "meta" }, `${say("page_answers_count", { count: one.answers })} · ${ratedBy(one)}`)]),
    most ? el("p", { class: "found" }, say("page_most_taught", {
      who: nameOf(most.person), share: percent(most.share), low: percent(most.low), high: percent(most.high),
    })) : ""];
}

function ratedBy({ good, rated }) {
  const liked = say("page_liked_few", { good, rated });
  return say("page_they_rated", { liked });
}

function groups({ data: { groups: all, compared, apart, names = {} } }) {
  const titleOf = (by) => (Object.hasOwn(DIMENSIONS, by) ? say(DIMENSIONS[by]) : by);
  const found = apart.map((one) => el("li", { class: "found" },
    el("strong", {}, apartOf(one, titleOf(one.by), named(names[one.by], one.group))), " ",
    say("page_group_shares", { share: percent(one.good / one.rated), rated: one.rated, other: percent(one.others_good / one.others_rated) }), " ",
    say(one.within_people ? "page_people_too" : "page_people_not")));
  return [
    found.length ? el("ul", { class: "finds" }, ...found) : el("p", {}, compared ? say("page_none_apart") : say("page_none_compared", { enough: ENOUGH })),
    compared ? el("p", { class: "count" }, say("page_compared", { count: compared }), " ", say("page_reach_how")) : "",
    ...Object.entries(all).filter(([, rows]) => rows.length).flatMap(([by, rows]) => [
      el("h3", {}, titleOf(by)), list(rows, (one) => groupOf(one, named(names[by], one.group)))])];
}

function groupOf(one, name) {
  const who = listed(...Object.entries(one.taught).slice(0, 3).map(([rater, share]) => `${nameOf(rater)} ${percent(share)}`));
  return [el("strong", {}, name), one.rated ? reach({ ...one, share: one.good / one.rated }) : el("span"), el("span", {}, likedOf(one)),
    who ? el("span", { class: "meta" }, say("page_taught_by", { who })) : ""];
}

// How the reader says what programs are told in English; a topic is a word of people's, and stays.
function named(names, word) {
  return names && Object.hasOwn(names, word) ? names[word] : word;
}

// The first few; all others behind a line that opens.
function list(rows, draw) {
  const of = (some) => el("ul", { class: "shares" }, ...some.map((one) => el("li", {}, ...draw(one))));
  if (rows.length <= FEW) return of(rows);
  return el("div", {}, of(rows.slice(0, FEW)),
    el("details", { class: "figures" }, el("summary", {}, say("page_rows_more", { count: rows.length - FEW })), of(rows.slice(FEW))));
}

// On a phone it is wider than the page: it scrolls by itself, by keyboard too.
function table(title, heads, rows) {
  return el("details", { class: "figures" }, el("summary", {}, title),
    el("div", { class: "wide-table", role: "region", "aria-label": title, tabindex: "0" },
      el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, ...[...rows].reverse().map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((said) => el("td", {}, said))))))));
}

function likedOf({ good, rated, low, high }) {
  if (!rated) return say("page_unrated");
  if (rated < ENOUGH) return say("page_liked_few", { good, rated });
  return say("page_liked_share", { share: percent(good / rated), low: percent(low), high: percent(high), rated });
}

function apartOf({ difference, low, high }, by, group) {
  const whole = (share) => Math.round(100 * Math.abs(share));
  const [from, to] = [whole(low), whole(high)].sort((one, two) => one - two);
  return say(difference < 0 ? "page_liked_less" : "page_liked_more", { by, group, points: whole(difference), low: from, high: to });
}

function nameOf(who) {
  return who.startsWith("judge:") ? say("page_a_judge") : who;
}

new Report().start();
