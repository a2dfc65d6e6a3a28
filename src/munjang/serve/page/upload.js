// The panel that shows the libraries and makes one of a file: the file is sent, then its job is asked how far it has got.
import { ask, send } from "./api.js";
import { by, make, note, problem, whole, working } from "./dom.js";
import { all, label, onLibraries, refresh } from "./libraries.js";
import { searchIn } from "./search.js";
import { goTo } from "./tabs.js";
import { onLanguage, t } from "./words.js";

const ASK_EVERY = 250;  // milliseconds
const form = by("upload-form"), drop = by("drop"), input = by("upload-file"), name = by("upload-name"), out = by("upload-out");
let file = null, told = null;

export function start() {
  input.addEventListener("change", () => choose(input.files[0]));
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, event => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", event => { event.preventDefault(); drop.classList.remove("over"); choose(event.dataTransfer.files[0]); });
  form.addEventListener("submit", event => { event.preventDefault(); upload(); });
  onLibraries(showLibraries);
  onLanguage(() => { showLibraries(); chosen(); if (told) told(); });
}

function choose(given) {
  if (!given) return;
  file = given;
  name.value ||= given.name.replace(/(\.\w+){1,2}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[^\p{L}\p{N}]+/u, "").slice(0, 64);
  chosen();
}

function chosen() { if (file) by("upload-chosen").textContent = file.name; }

async function upload() {
  told = null;
  const wanted = !file ? "upload.none" : !name.value.trim() ? "upload.noname" : null;
  if (wanted) { out.replaceChildren(note(t(wanted))); return; }
  const columns = Object.entries({ text_column: by("upload-text").value.trim(), id_column: by("upload-id").value.trim() }).filter(each => each[1]);
  const query = new URLSearchParams([["filename", file.name], ...columns]), library = name.value.trim();
  await working(form, out, async signal => {
    const bar = make("progress", { max: "1", "aria-label": t("upload.progress") }), says = make("p", { role: "status" });
    const stop = make("button", { type: "button" }, t("upload.stop"));
    out.replaceChildren(make("div", { class: "progress" }, bar, stop), says);
    const sent = (done, total) => { bar.value = done / total; says.textContent = t("upload.sending", { file: file.name, percent: Math.round(100 * done / total) }); };
    const job = await send(`/api/libraries/${encodeURIComponent(library)}/upload?${query}`, file, { sent, signal });
    stop.addEventListener("click", () => ask(`/api/jobs/${job.id}`, undefined, { method: "DELETE" }).catch(() => {}));
    const end = await follow(job, bar, says, signal);
    if (end.state === "failed") throw new Error(end.error);
    told = () => tell(library, end);
    await refresh();
    told();
  });
}

async function follow(job, bar, says, signal) {
  while (job.state === "waiting" || job.state === "running") {
    if (job.total === null) { bar.removeAttribute("value"); says.textContent = t("upload.waiting", { file: file.name }); } else {
      bar.value = job.done / job.total;
      says.textContent = t("upload.running", { done: whole(job.done), total: whole(job.total) });
    }
    await new Promise(resolve => setTimeout(resolve, ASK_EVERY));
    job = await ask(`/api/jobs/${job.id}`, undefined, { signal });
  }
  return job;
}

function tell(library, job) {
  const numbers = Object.fromEntries(Object.entries(job.result ?? {}).filter(([, value]) => typeof value === "number").map(([key, value]) => [key, whole(value)]));
  const text = job.state === "done" ? t("upload.done", { library, ...numbers }) : t("upload.stopped", { done: whole(job.done) });
  out.replaceChildren(make("p", { class: "fine", role: "status" }, text), make("button", { type: "button", class: "main", on: { click: () => leave(library) } }, t("upload.search", { library })));
}

function leave(library) { goTo("search"); searchIn(library); }

function showLibraries() {
  by("libraries-out").replaceChildren(make("ul", { class: "libraries" }, all().libraries.map(libraryItem)));
  const closed = !all().can_create;
  for (const element of form.querySelectorAll("input, button")) element.disabled = closed;
  drop.classList.toggle("off", closed);
  by("upload-closed").hidden = !closed;
}

function libraryItem(library) {
  const facts = t("upload.facts", { documents: whole(library.documents), model: library.model, dimension: whole(library.dimension) });
  const open = make("button", { type: "button", class: "chip", on: { click: () => leave(library.name) } }, t("search.go"));
  const item = make("li", {}, make("div", {}, make("b", {}, library.sample ? t("sample") : library.name), make("span", { class: "quiet" }, facts)), make("div", { class: "chips" }, open));
  if (!library.sample && all().can_create) item.lastChild.append(deletion(library, item));
  open.setAttribute("aria-label", t("upload.search", { library: label(library) }));
  return item;
}

// Asks once more before it deletes: the button changes its words, and back when it is left.
function deletion(library, item) {
  const button = make("button", { type: "button", class: "chip" }, t("upload.delete"));
  const calm = () => { button.textContent = t("upload.delete"); button.classList.remove("danger"); };
  button.addEventListener("blur", calm);
  button.addEventListener("click", async () => {
    if (!button.classList.contains("danger")) { button.textContent = t("upload.sure"); button.classList.add("danger"); return; }
    try {
      await ask(`/api/libraries/${encodeURIComponent(library.name)}`, undefined, { method: "DELETE" });
      await refresh();
    } catch (error) { calm(); item.append(problem(error)); }
  });
  return button;
}
