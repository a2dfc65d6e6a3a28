// Where the texts of an analysis come from: a library, or the reader's own, pasted or from a file.
import { make, note, whole } from "./dom.js";
import { textsOf } from "./files.js";
import { offer } from "./libraries.js";
import { t, translate } from "./words.js";

let made = 0;

export const linesOf = text => text.split(/\r?\n/).map(line => line.trim()).filter(Boolean);

// Fills `place` with the choice; read(least) returns { library } or { texts }, or throws where there are too few.
export function chooseSource(place) {
  const name = `source-${++made}`, said = make("div", { role: "status" });
  const radio = value => make("input", { type: "radio", name, value, checked: value === "library" });
  const select = make("select", { "data-t-label": "library" });
  const texts = make("textarea", { rows: "6", "data-t-label": "source.texts", "data-t-placeholder": "source.placeholder" });
  const file = make("input", { type: "file", accept: ".txt,.csv,.tsv,.jsonl" });
  const library = radio("library"), own = radio("own");
  const ownPart = make("div", { class: "own", hidden: true }, texts, make("label", { class: "file" }, file, make("span", { "data-t": "source.file" })), said);
  const turn = () => { ownPart.hidden = !own.checked; select.disabled = own.checked; };
  library.addEventListener("change", turn);
  own.addEventListener("change", turn);
  file.addEventListener("change", () => { if (file.files[0]) fill(file.files[0]); file.value = ""; });
  ownPart.addEventListener("dragover", event => event.preventDefault());
  ownPart.addEventListener("drop", event => { event.preventDefault(); if (event.dataTransfer.files[0]) fill(event.dataTransfer.files[0]); });

  async function fill(chosen) {
    const found = await textsOf(chosen);
    if (found.length) texts.value = found.map(text => text.replace(/\s+/g, " ")).join("\n");
    said.replaceChildren(note(t(found.length ? "source.read" : "source.unreadable", { count: whole(found.length), file: chosen.name })));
  }

  place.append(make("fieldset", {}, make("legend", { "data-t": "source.from" }),
    make("label", { class: "check" }, library, make("span", { "data-t": "source.library" })), select,
    make("label", { class: "check" }, own, make("span", { "data-t": "source.own" })), ownPart));
  translate(place);
  offer(select);

  return function read(least) {
    if (library.checked) return { library: select.value };
    const found = linesOf(texts.value);
    if (found.length < least) throw new Error(t("source.few", { count: least }));
    return { texts: found };
  };
}
