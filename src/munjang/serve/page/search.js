// The panel that searches a library: query, filter, meaning or words alone, re-rank; and documents that steer the search.
import { ask } from "./api.js";
import { by, make, note, whole, working } from "./dom.js";
import { hitItem } from "./hits.js";
import { all, named, offer, onLibraries } from "./libraries.js";
import { onLanguage, t } from "./words.js";

const EXAMPLES = 4;
const form = by("search-form"), query = by("query"), library = by("search-library"), where = by("where"), out = by("search-out");
const steer = new Map();  // id → "like" or "unlike"
let answer = null, asked = null;

export function start() {
  offer(library);
  form.addEventListener("submit", event => { event.preventDefault(); search(); });
  form.addEventListener("keydown", event => { if (event.key === "Escape" && event.target === query) clear(); });
  library.addEventListener("change", () => { steer.clear(); show(); if (asked) search(); });
  for (const id of ["by", "rerank", "count"]) by(id).addEventListener("change", () => { if (asked) search(); });
  onLibraries(ready);
  onLanguage(() => { ready(); show(); });
}

// Shows the sample collection at work to people who have nothing of their own yet.
export async function open() {
  if (!named(library.value)?.sample) return;
  query.value = t("search.example.1");
  await search();
}

export function searchIn(name) {
  library.value = name;
  steer.clear();
  answer = asked = null;
  query.value = where.value = "";
  show();
  query.focus();
}

function ready() {
  const texts = Array.from({ length: EXAMPLES }, (_, number) => t(`search.example.${number + 1}`));
  const chip = text => make("button", { type: "button", class: "chip", on: { click: () => { query.value = text; search(); } } }, text);
  by("examples").replaceChildren(...(named(library.value)?.sample ? [make("span", {}, t("search.try")), ...texts.map(chip)] : []));
}

function clear() {
  query.value = "";
  answer = asked = null;
  show();
}

async function search() {
  const picked = kind => [...steer].filter(each => each[1] === kind).map(each => each[0]);
  const body = { query: query.value.trim() || null, k: Number(by("count").value), where: where.value.trim() || null, explain: true,
    by: by("by").value || null, rerank: by("rerank").checked || null, like: picked("like"), unlike: picked("unlike") };
  if (!body.query && !steer.size) {
    answer = asked = null;
    out.replaceChildren(note(t("search.empty")));
    return;
  }
  if (!body.query) body.rerank = null;  // it needs words to read
  if (steer.size) body.by = null;  // documents to look near are compared by meaning
  await working(form, out, async signal => {
    answer = await ask(`/api/libraries/${encodeURIComponent(library.value)}/search`, body, { signal });
    asked = body;
    show();
  });
}

function show() {
  by("liked").replaceChildren(...[...steer].map(([id, kind]) => steered(id, kind)));
  if (!answer) { out.replaceChildren(); return; }
  const best = Math.max(...answer.hits.map(hit => hit.score), 1e-9);
  const items = answer.hits.map((hit, number) => hitItem(hit, { number: number + 1, best, steered: steer.get(hit.id), steer: turn, filter: narrow }));
  const found = t("search.found", { count: whole(answer.hits.length), milliseconds: Math.round(answer.milliseconds) });
  out.replaceChildren(make("p", { class: "quiet", role: "status" }, answer.hits.length ? found : t("search.nothing")),
    ...(answer.query_truncated ? [note(t("search.cut"))] : []), ...answer.warnings.map(each => note(each)), make("ol", { class: "hits" }, items));
}

function steered(id, kind) {
  const text = t(kind === "like" ? "search.near" : "search.away", { id });
  return make("button", { type: "button", class: `chip ${kind}`, "aria-label": t("search.drop", { what: text }), on: { click: () => turn(id, kind) } },
    text, make("span", { "aria-hidden": "true" }, " ×"));
}

function turn(id, kind) {
  if (steer.get(id) === kind) steer.delete(id);
  else steer.set(id, kind);
  search();
}

function narrow(condition) {
  const before = where.value.trim();
  if (!before.includes(condition)) where.value = before ? `${before} and ${condition}` : condition;
  search();
}
