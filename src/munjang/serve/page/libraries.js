// The server's libraries, and every <select> that offers them.
import { ask } from "./api.js";
import { make, whole } from "./dom.js";
import { onLanguage, t } from "./words.js";

const selects = [], listeners = [];
let known = { libraries: [], read_only: true, can_create: false };

export const all = () => known;
export const named = name => known.libraries.find(each => each.name === name);
export const onLibraries = listener => listeners.push(listener);

export async function refresh() {
  known = await ask("/api/libraries");
  selects.forEach(fill);
  listeners.forEach(listener => listener());
}

export function offer(select) {
  selects.push(select);
  fill(select);
}

function fill(select) {
  const before = select.value;
  select.replaceChildren(...known.libraries.map(each => make("option", { value: each.name }, label(each))));
  if (known.libraries.some(each => each.name === before)) select.value = before;
}

export function label(library) {
  return `${library.sample ? t("sample") : library.name} (${whole(library.documents)})`;
}

onLanguage(() => selects.forEach(fill));
