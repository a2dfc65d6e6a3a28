// The panel that labels texts, by the names of labels, by examples from a file, or by a classifier that the server has: how many have each
// label, a table, and a CSV to download.
import { ask } from "./api.js";
import { by, decimal, make, note, whole, working } from "./dom.js";
import { examplesOf } from "./files.js";
import { chooseSource, linesOf } from "./source.js";
import { onLanguage, t } from "./words.js";

const SHOWN = 200;
const form = by("labels-form"), names = by("labels-names"), file = by("labels-file"), forget = by("labels-forget"), said = by("labels-examples"), out = by("labels-out");
const served = by("labels-classifier"), several = by("labels-multi"), precision = by("labels-precision");
let read = null, answer = null, example = "", examples = null;

export function start() {
  read = chooseSource(form.querySelector(".source"));
  form.addEventListener("submit", event => { event.preventDefault(); label(); });
  file.addEventListener("change", () => { if (file.files[0]) learn(file.files[0]); file.value = ""; });
  forget.addEventListener("click", () => { examples = null; turn(); });
  served.addEventListener("change", turn);
  onLanguage(() => {
    if (names.value === example) names.value = example = t("labels.example");
    turn();
    if (answer) show();
  });
}

// Offers the classifiers that the server has; without any there is nothing to choose.
export async function open() {
  const { classifiers } = await ask("/api/classifiers");
  served.append(...classifiers.map(each => make("option", { value: each.name }, each.name)));
  served.parentElement.hidden = !classifiers.length;
}

async function learn(chosen) {
  const found = await examplesOf(chosen);
  examples = found.length ? { rows: found, file: chosen.name } : null;
  if (examples && found.some(each => Array.isArray(each.label))) several.checked = true;
  turn();
  if (!examples) said.replaceChildren(note(t("labels.unreadable", { file: chosen.name })));
}

// What a choice leaves no room for is switched off: a classifier knows its labels, and names alone show no precision.
function turn() {
  names.disabled = Boolean(examples || served.value);
  file.disabled = several.disabled = Boolean(served.value);
  precision.disabled = !examples && !served.value;
  forget.hidden = !examples || Boolean(served.value);
  said.replaceChildren(...(examples && !served.value ? [note(t("labels.examples", { count: whole(examples.rows.length), file: examples.file }))] : []));
}

function asked() {
  const sure = precision.disabled || !precision.value ? {} : { precision: Number(precision.value) };
  if (served.value) return { classifier: served.value, ...sure };
  if (examples) return { examples: examples.rows, multi: several.checked, ...sure };
  const labels = linesOf(names.value.replaceAll(",", "\n"));
  if (labels.length < 2) throw new Error(t("labels.few"));
  return { labels, multi: several.checked };
}

async function label() {
  answer = null;
  await working(form, out, async signal => {
    const body = asked(), source = read(1);
    const found = await ask("/api/classify", { ...source, ...body }, { signal });
    answer = { ...found, whole: source.texts, learnt: !body.labels };
    show();
  });
}

function show() {
  const counts = new Map(answer.names.map(name => [name, 0]));
  for (const each of answer.results) for (const name of each.labels.length ? each.labels : [""]) counts.set(name, (counts.get(name) ?? 0) + 1);
  const total = answer.results.length, order = [...counts].sort((a, b) => b[1] - a[1]), most = Math.max(...counts.values(), 1);
  out.replaceChildren(make("p", { class: "quiet", role: "status" }, summary(total)),
    ...(answer.truncated.length ? [note(t("truncated", { count: whole(answer.truncated.length) }))] : []),
    make("ul", { class: "bars" }, order.map(([name, count]) => bar(name || t("labels.none"), count, most, total))), table(),
    ...(total > SHOWN ? [note(t("labels.more", { count: whole(total - SHOWN) }))] : []),
    make("p", {}, make("button", { type: "button", class: "chip", id: "labels-download", on: { click: download } }, t("labels.download"))));
}

function summary(total) {
  const known = answer.accuracy !== null ? "examples" : answer.macro_f1 !== null ? "several" : answer.learnt ? "untested" : "names";
  const words = [t("labels.summary", { count: whole(total), labels: whole(answer.names.length) }),
    t(`labels.summary.${known}`, { accuracy: percent(answer.accuracy), f1: decimal(answer.macro_f1 ?? 0, 2) })];
  if (answer.abstention) words.push(t("labels.summary.sure", { precision: percent(answer.abstention.held_out_precision), share: percent(answer.abstention.held_out_share) }));
  return words.join(" ");
}

const percent = share => `${Math.round(100 * (share ?? 0))}%`;

function bar(name, count, most, total) {
  return make("li", {}, make("span", { class: "name" }, name), gauge(count / most), make("span", { class: "score" }, `${whole(count)} (${percent(count / total)})`));
}

function gauge(share) {
  const element = make("span", { class: "gauge", "aria-hidden": "true" }, make("i"));
  element.firstChild.style.width = `${100 * share}%`;
  return element;
}

function table() {
  const head = ["labels.label", "labels.probability", "labels.runner_up", "labels.text"].map(name => make("th", { scope: "col" }, t(name)));
  const rows = answer.results.slice(0, SHOWN).map((each, at) => make("tr", {},
    make("td", { class: "label" }, each.labels.length ? each.labels.join(", ") : make("span", { class: "quiet" }, t("labels.unsure", { guess: each.guess }))),
    make("td", { class: "score" }, gauge(each.probability), decimal(each.probability, 2)),
    make("td", { class: "quiet runner" }, each.runner_up && `${each.runner_up} ${decimal(each.runner_up_probability, 2)}`), make("td", { class: "text" }, answer.texts[at])));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": t("labels.title") },
    make("table", { class: "plain labelled" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

// Cells that a spreadsheet would take for a formula begin with an apostrophe there.
const cell = value => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

function download() {
  const rows = answer.results.map((each, at) => [...(answer.ids ? [answer.ids[at]] : []), (answer.whole ?? answer.texts)[at], each.labels.join(";"), each.probability.toFixed(6),
    each.runner_up, each.runner_up_probability.toFixed(6), ...(answer.abstention ? [each.guess] : [])]);
  const head = [...(answer.ids ? ["id", "beginning"] : ["text"]), "label", "probability", "runner_up", "runner_up_probability", ...(answer.abstention ? ["guess"] : [])];
  const content = "\ufeff" + [head, ...rows].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type: "text/csv" })), download: "labels.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
