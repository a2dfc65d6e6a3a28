// The panel that compares sentences: a matrix of all, two of them token by token, one of them as the model sees it.
import { ask } from "./api.js";
import { by, decimal, make, note, whole, working } from "./dom.js";
import { heatTable } from "./heat.js";
import { linesOf } from "./source.js";
import { onLanguage, t } from "./words.js";

const SHOWN_NUMBERS = 8;
const form = by("compare-form"), texts = by("compare-texts"), out = by("compare-out"), tokensOut = by("tokens-out");
let sentences = [], answer = null, looked = null, example = "";

export function start() {
  form.addEventListener("submit", event => { event.preventDefault(); compare(); });
  texts.addEventListener("keydown", event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  onLanguage(() => {
    if (texts.value === example) texts.value = example = t("compare.example");
    if (answer) show();
    if (looked) showLooked();
  });
}

async function compare() {
  sentences = linesOf(texts.value);
  answer = looked = null;
  tokensOut.replaceChildren();
  if (sentences.length < 2) { out.replaceChildren(note(t("compare.few"))); return; }
  await working(form, out, async signal => {
    answer = await ask("/api/similarity", { a: sentences }, { signal });
    show();
  });
}

function show() {
  const rows = sentences.map((text, number) => ({ text: `${number + 1}. ${text}`, title: text }));
  const columns = sentences.map((text, number) => ({ text: String(number + 1), title: text }));
  const cut = answer.truncated.length ? note(t("truncated", { count: whole(answer.truncated.length) })) : "";
  out.replaceChildren(heatTable(answer.scores, rows, columns, { caption: t("compare.caption"), pick: lookAtTwo, look: lookAtOne }), cut);
}

const lookAtTwo = (row, column) => look({ text: sentences[row], other: sentences[column] });
const lookAtOne = row => look({ text: sentences[row] });

async function look(body) {
  await working(form, tokensOut, async signal => {
    looked = { body, found: await ask("/api/inspect", body, { signal }) };
    showLooked();
    tokensOut.scrollIntoView({ block: "nearest", behavior: "smooth" });
  });
}

function showLooked() {
  tokensOut.replaceChildren(...(looked.body.other === undefined ? inside(looked.found.first) : tokenMap(looked.found)));
}

function tokenMap(found) {
  const names = side => side.tokens.map(token => ({ text: token.text }));
  return [make("h2", {}, t("compare.tokens")), note(t("compare.tokens.lead", { score: decimal(found.score) })),
    heatTable(found.cosine, names(found.first), names(found.second), { caption: `${found.first.text} × ${found.second.text}`, upright: true })];
}

function inside(found) {
  const head = names => make("thead", {}, make("tr", {}, names.map(name => make("th", { scope: "col" }, t(name)))));
  const line = values => make("tr", {}, values.map(value => make("td", {}, String(value))));
  const wide = (label, ...parts) => make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, make("table", { class: "plain" }, ...parts));
  const tokens = found.tokens.map(token => line([token.text, token.id, token.segment, token.position, token.mask]));
  const layers = found.layers.map(layer => line([layer.name, layer.shape.join(" × ")]));
  const numbers = found.vector.slice(0, SHOWN_NUMBERS).map(value => decimal(value)).join(", ");
  return [make("h2", {}, t("compare.inside")), make("p", { class: "text" }, found.text),
    note(t("compare.inside.lead", { tokens: found.tokens.length, dimension: whole(found.vector.length) })),
    make("div", { class: "halves" }, wide(t("inside.token"), head(["inside.token", "inside.id", "inside.segment", "inside.position", "inside.mask"]), make("tbody", {}, tokens)),
      wide(t("inside.layer"), head(["inside.layer", "inside.shape"]), make("tbody", {}, layers))),
    make("p", { class: "quiet" }, `${t("inside.vector")}: `, make("code", {}, `${numbers} …`))];
}
