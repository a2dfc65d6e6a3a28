// One hit → a list item: the passage with the query's words marked, its score, its metadata, and why it was found.
import { cut, decimal, make } from "./dom.js";
import { t } from "./words.js";

const AROUND = 160, LONGEST = 1200;
const SIMPLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function hitItem(hit, { number, best, steered, steer, filter }) {
  const gauge = make("span", { class: "gauge", "aria-hidden": "true" }, make("i"));
  gauge.firstChild.style.width = `${Math.max(2, Math.min(100, 100 * hit.score / best))}%`;
  const press = kind => make("button", { type: "button", class: `chip ${kind}`, "aria-pressed": String(steered === kind),
    on: { click: () => steer(hit.id, kind) } }, make("span", { "aria-hidden": "true" }, kind === "like" ? "+ " : "− "), t(`search.${kind}`));
  return make("li", { class: "hit" },
    make("div", { class: "head" }, make("span", { class: "number" }, String(number)), make("span", { class: "id" }, hit.citation || hit.id),
      make("div", { class: "chips facts" }, ...facts(hit.metadata, filter)), gauge,
      make("span", { class: "score" }, make("span", { class: "hidden" }, `${t("search.score")} `), decimal(hit.score))),
    passage(hit),
    make("div", { class: "foot" }, why(hit), make("div", { class: "chips" }, press("like"), press("unlike"))));
}

function passage(hit) {
  const before = cut(hit.text, 0, hit.start), inside = cut(hit.text, hit.start, hit.stop), after = cut(hit.text, hit.stop);
  const left = before.length > AROUND ? `… ${before.slice(-AROUND)}` : before, right = after.length > AROUND ? `${after.slice(0, AROUND)} …` : after;
  const shown = inside.length > LONGEST ? `${inside.slice(0, LONGEST)} …` : inside;
  const around = text => text ? make("span", { class: "quiet" }, text) : null;
  return make("p", { class: "text" }, around(left), ...met(shown, hit), around(right));
}

// Marks the words of a passage that a word of the query met, each with that word and their cosine; the stronger, the fuller its colour.
function met(shown, hit) {
  const words = hit.explanation?.words ?? [], places = new Map();
  for (const each of hit.explanation?.matches ?? [])
    places.set(each.start, { stop: each.stop, best: Math.max(each.cosine, places.get(each.start)?.best ?? 0),
      asked: [...(places.get(each.start)?.asked ?? []), `${each.query} ${decimal(each.cosine, 2)}`] });
  const parts = [], length = [...shown].length;
  let at = 0;
  for (const [start, { stop, best, asked }] of [...places].sort((one, other) => one[0] - other[0])) {
    const from = start - hit.start, to = stop - hit.start;
    if (from < at || to > length) continue;
    const word = make("mark", { class: "met", title: asked.join(", ") }, cut(shown, from, to));
    word.style.setProperty("--share", `${Math.round(100 * Math.min(Math.max(best, 0), 1))}%`);
    parts.push(...marked(cut(shown, at, from), words), word);
    at = to;
  }
  return [...parts, ...marked(cut(shown, at), words)];
}

// Splits a text where one of the words stands, and marks it. A Korean word may carry a particle; a word in other letters must stand alone.
function marked(text, words) {
  const escaped = word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found = words.map(word => /\p{Script=Hangul}/u.test(word) ? escaped(word) : `(?<![\\p{L}\\p{N}])${escaped(word)}(?![\\p{L}\\p{N}])`);
  if (!found.length) return [text];
  return text.split(new RegExp(`(${found.join("|")})`, "giu")).map((part, at) => at % 2 ? make("mark", {}, part) : part);
}

function facts(metadata, filter) {
  return Object.entries(metadata).filter(([, value]) => value !== null && typeof value !== "object").slice(0, 6).map(([name, value]) => {
    const text = `${name}: ${String(value).slice(0, 60)}`, condition = conditionOf(name, value);
    if (condition === null) return make("span", { class: "chip" }, text);
    return make("button", { type: "button", class: "chip", "aria-label": t("search.filter", { what: text }), on: { click: () => filter(condition) } }, text);
  });
}

function conditionOf(name, value) {
  if (!SIMPLE.test(name) || typeof value === "boolean") return null;
  return typeof value === "number" ? `${name} = ${value}` : `${name} = '${value.replaceAll("'", "''")}'`;
}

function why(hit) {
  const found = hit.explanation;
  if (!found) return null;
  const ranked = (value, rank) => value === null ? "–" : rank === null ? decimal(value) : t("why.rank", { value: decimal(value), rank });
  const rows = [[t("why.cosine"), ranked(found.cosine, found.meaning_rank)], [t("why.bm25"), ranked(found.bm25, found.words_rank)],
    [t("why.words"), found.words.join(", ") || t("why.none")]];
  if (hit.scored_by === "cross-encoder") rows.push([t("why.reranked"), t("why.reranked.text", { score: decimal(hit.score) })]);
  if (found.late !== null) rows.push([t("why.late"), decimal(found.late)]);
  if (found.matches.length) rows.push([t("why.matches"), found.matches.map((each) => `${each.query} – ${each.text}`).join(", ")]);
  return make("details", {}, make("summary", {}, t("search.why")), make("dl", {}, rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
}
