// The panel that finds topics or clusters in a collection, and shows each with its words and texts.
import { ask } from "./api.js";
import { by, decimal, make, note, whole, working } from "./dom.js";
import { chooseSource } from "./source.js";
import { onLanguage, t } from "./words.js";

const LEAST = 4, TYPICAL = 3, MOST_MEMBERS = 500;
const form = by("groups-form"), kind = by("groups-kind"), method = by("groups-method"), out = by("groups-out");
let answer = null, read = null;

export function start() {
  read = chooseSource(form.querySelector(".source"));
  kind.addEventListener("change", methods);
  form.addEventListener("submit", event => { event.preventDefault(); find(); });
  onLanguage(() => { methods(); if (answer) show(); });
}

function methods() {
  const before = method.value, names = kind.selectedOptions[0].dataset.choices.split(" ");
  method.replaceChildren(...names.map(name => make("option", { value: name }, t(`method.${name}`))));
  if (names.includes(before)) method.value = before;
}

async function find() {
  answer = null;
  await working(form, out, async signal => {
    const number = Number(by("groups-number").value) || null, topics = kind.value === "topics";
    const body = { ...read(LEAST), method: method.value, min_size: Number(by("groups-min").value) || 1, [topics ? "topics" : "k"]: number };
    const found = await ask(topics ? "/api/topics" : "/api/clusters", body, { signal });
    answer = { ...found, kind: kind.value };
    show();
  });
}

function show() {
  const groups = groupsOf(answer), numbers = { count: whole(groups.length), outliers: whole(answer.outliers) };
  if (answer.kind === "topics") Object.assign(numbers, { coherence: decimal(answer.coherence, 2), diversity: decimal(answer.diversity, 2) });
  const largest = Math.max(...groups.map(group => group.size), 1);
  out.replaceChildren(make("p", { class: "quiet", role: "status" }, t(`groups.summary.${answer.kind}`, numbers)),
    ...(answer.truncated.length ? [note(t("truncated", { count: whole(answer.truncated.length) }))] : []),
    make("ol", { class: "groups" }, groups.map(group => card(group, largest))));
}

// Topics and clusters in one form: name, size, words with weights from 0 to 1, and the numbers of typical texts.
export function groupsOf(found) {
  if (found.topics) return found.topics.map(topic => {
    const most = Math.max(...topic.words.map(each => each.weight), 1e-9);
    return { label: topic.id, size: topic.size, name: topic.name || t("groups.unnamed", { label: topic.id }), typical: topic.documents,
      words: topic.words.map(each => ({ text: each.word, share: each.weight / most })) };
  });
  return found.clusters.map(each => ({ label: each.label, size: each.size, name: each.phrases.slice(0, 3).join(", ") || t("groups.unnamed", { label: each.label }),
    typical: found.labels.flatMap((label, at) => label === each.label ? [at] : []), words: each.phrases.map(text => ({ text, share: 0.5 })) }));
}

function card(group, largest) {
  const gauge = make("span", { class: "gauge", "aria-hidden": "true" }, make("i"));
  gauge.firstChild.style.width = `${Math.max(2, 100 * group.size / largest)}%`;
  const words = group.words.map(word => {
    const chip = make("li", { class: "chip keyword" }, word.text);
    chip.style.setProperty("--share", `${Math.round(100 * word.share)}%`);
    return chip;
  });
  const text = at => make("li", {}, answer.texts[at]);
  const all = make("details", {}, make("summary", {}, t("groups.members", { count: whole(group.size) })));
  all.addEventListener("toggle", () => {  // made when somebody looks: a collection may be large
    const members = answer.labels.flatMap((label, at) => label === group.label ? [at] : []);
    if (all.open && all.children.length === 1) all.append(make("ul", { class: "texts" }, members.slice(0, MOST_MEMBERS).map(text)));
  });
  return make("li", { class: "group" }, make("div", { class: "head" }, make("h2", {}, group.name), gauge, make("span", { class: "score" }, whole(group.size))),
    make("ul", { class: "chips" }, words), make("ul", { class: "texts" }, group.typical.slice(0, TYPICAL).map(text)), group.size > TYPICAL ? all : null);
}
