// The panel that finds a text's keywords and marks them where they stand.
import { ask } from "./api.js";
import { by, decimal, make, note, working } from "./dom.js";
import { onLanguage, t } from "./words.js";

const form = by("keywords-form"), text = by("keywords-text"), out = by("keywords-out");
let answer = null, example = "";

export function start() {
  form.addEventListener("submit", event => { event.preventDefault(); find(); });
  onLanguage(() => {
    if (text.value === example) text.value = example = t("keywords.example");
    if (answer) show();
  });
}

async function find() {
  answer = null;
  if (!text.value.trim()) { out.replaceChildren(note(t("keywords.empty"))); return; }
  const body = { texts: [text.value], top: Number(by("keywords-top").value), max_words: Number(by("keywords-words").value),
    diversity: Number(by("keywords-diversity").value) };
  await working(form, out, async signal => {
    answer = await ask("/api/keywords", body, { signal });
    show();
  });
}

function show() {
  const found = answer.keywords[0];
  if (!found.length) { out.replaceChildren(note(t("keywords.none"))); return; }
  const best = Math.max(...found.map(each => each.score), 1e-9);
  const marks = highlighted(answer.texts[0], found);
  const light = (number, on) => marks.forEach(mark => mark.classList.toggle("lit", on && mark.dataset.keyword === String(number)));
  const chips = found.map((each, number) => {
    const on = () => light(number, true), off = () => light(number, false);
    const chip = make("button", { type: "button", class: "chip keyword", on: { mouseenter: on, focus: on, mouseleave: off, blur: off } },
      each.text, make("span", { class: "score" }, decimal(each.score, 2)));
    chip.style.setProperty("--share", `${Math.round(100 * Math.max(each.score, 0) / best)}%`);
    return make("li", {}, chip);
  });
  out.replaceChildren(make("ol", { class: "chips keywords" }, chips), make("p", { class: "text highlighted" }, ...marks.parts));
}

// The text in parts; every stretch that a keyword covers is a <mark>, the better keyword first where two overlap.
function highlighted(text, keywords) {
  const characters = [...text], owner = new Array(characters.length).fill(-1);
  keywords.forEach((each, number) => each.places.forEach(([start, stop]) => {
    for (let at = start; at < stop; at++) if (owner[at] < 0) owner[at] = number;
  }));
  const marks = [], parts = [];
  for (let start = 0, at = 1; at <= characters.length; at++) {
    if (at < characters.length && owner[at] === owner[start]) continue;
    const piece = characters.slice(start, at).join("");
    if (owner[start] < 0) parts.push(piece);
    else { const mark = make("mark", { "data-keyword": String(owner[start]) }, piece); marks.push(mark); parts.push(mark); }
    start = at;
  }
  marks.parts = parts;
  return marks;
}
