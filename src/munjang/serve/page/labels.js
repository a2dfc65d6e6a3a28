// The panel that labels texts, by the names of labels or by examples from a file: how many have each label, a table, and a CSV to download.
import { ask } from "./api.js";
import { by, decimal, make, note, whole, working } from "./dom.js";
import { examplesOf } from "./files.js";
import { chooseSource, linesOf } from "./source.js";
import { onLanguage, t } from "./words.js";

const SHOWN = 200;
const form = by("labels-form"), names = by("labels-names"), file = by("labels-file"), forget = by("labels-forget"), said = by("labels-examples"), out = by("labels-out");
let read = null, answer = null, example = "", examples = null;

export function start() {
  read = chooseSource(form.querySelector(".source"));
  form.addEventListener("submit", event => { event.preventDefault(); label(); });
  file.addEventListener("change", () => { if (file.files[0]) learn(file.files[0]); file.value = ""; });
  forget.addEventListener("click", () => { examples = null; turn(); });
  onLanguage(() => {
    if (names.value === example) names.value = example = t("labels.example");
    turn();
    if (answer) show();
  });
}

async function learn(chosen) {
  const found = await examplesOf(chosen);
  examples = found.length ? { rows: found, file: chosen.name } : null;
  turn();
  if (!examples) said.replaceChildren(note(t("labels.unreadable", { file: chosen.name })));
}

function turn() {
  names.disabled = Boolean(examples);
  forget.hidden = !examples;
  said.replaceChildren(...(examples ? [note(t("labels.examples", { count: whole(examples.rows.length), file: examples.file }))] : []));
}

async function label() {
  answer = null;
  await working(form, out, async signal => {
    const labels = linesOf(names.value.replaceAll(",", "\n"));
    if (!examples && labels.length < 2) throw new Error(t("labels.few"));
    const source = read(1);
    const found = await ask("/api/classify", { ...source, ...(examples ? { examples: examples.rows } : { labels }) }, { signal });
    answer = { ...found, whole: source.texts };
    show();
  });
}

function show() {
  const counts = new Map(answer.names.map(name => [name, 0]));
  for (const each of answer.results) counts.set(each.guess, counts.get(each.guess) + 1);
  const total = answer.results.length, order = [...counts].sort((a, b) => b[1] - a[1]), most = Math.max(...counts.values(), 1);
  const summary = t(answer.accuracy === null ? "labels.summary" : "labels.summary.examples",
    { count: whole(total), labels: whole(counts.size), accuracy: decimal(answer.accuracy ?? 0, 2) });
  out.replaceChildren(make("p", { class: "quiet", role: "status" }, summary),
    ...(answer.truncated.length ? [note(t("truncated", { count: whole(answer.truncated.length) }))] : []),
    make("ul", { class: "bars" }, order.map(([name, count]) => bar(name, count, most, total))), table(),
    ...(total > SHOWN ? [note(t("labels.more", { count: whole(total - SHOWN) }))] : []),
    make("p", {}, make("button", { type: "button", class: "chip", id: "labels-download", on: { click: download } }, t("labels.download"))));
}

function bar(name, count, most, total) {
  const gauge = make("span", { class: "gauge", "aria-hidden": "true" }, make("i"));
  gauge.firstChild.style.width = `${100 * count / most}%`;
  return make("li", {}, make("span", { class: "name" }, name), gauge, make("span", { class: "score" }, `${whole(count)} (${Math.round(100 * count / total)} %)`));
}

function table() {
  const head = ["labels.label", "labels.probability", "labels.runner_up", "labels.text"].map(name => make("th", { scope: "col" }, t(name)));
  const rows = answer.results.slice(0, SHOWN).map((each, at) => make("tr", {}, make("td", {}, each.guess), make("td", { class: "score" }, decimal(each.probability, 2)),
    make("td", {}, `${each.runner_up} ${decimal(each.runner_up_probability, 2)}`), make("td", {}, answer.texts[at])));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": t("labels.title") },
    make("table", { class: "plain" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

// Cells that a spreadsheet would take for a formula begin with an apostrophe there.
const cell = value => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

function download() {
  const rows = answer.results.map((each, at) => [...(answer.ids ? [answer.ids[at]] : []), (answer.whole ?? answer.texts)[at], each.guess, each.probability.toFixed(6), each.runner_up, each.runner_up_probability.toFixed(6)]);
  const head = [...(answer.ids ? ["id", "beginning"] : ["text"]), "label", "probability", "runner_up", "runner_up_probability"];
  const content = "\ufeff" + [head, ...rows].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type: "text/csv" })), download: "labels.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
