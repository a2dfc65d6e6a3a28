// The page's own words in two languages. Elements say which words they want: data-t, data-t-label, data-t-placeholder, data-t-title.
import en from "./words_en.js";
import ko from "./words_ko.js";

const KEPT = "munjang-language", LANGUAGES = { en, ko };
const listeners = [];
const kept = localStorage.getItem(KEPT);
let language = kept in LANGUAGES ? kept : navigator.language.startsWith("ko") ? "ko" : "en";

export const current = () => language;

// t("search.found", { count: 3 }) fills {count} in; {count|hit|hits} is "1 hit" or "3 hits".
export function t(name, values = {}) {
  return LANGUAGES[language][name].replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g,
    (_, value, one, many) => one === undefined ? values[value] : `${values[value]} ${String(values[value]) === "1" ? one : many}`);
}

export function translate(root) {
  const each = (attribute, apply) => root.querySelectorAll(`[${attribute}]`).forEach(one => apply(one, t(one.getAttribute(attribute))));
  each("data-t", (one, text) => { one.textContent = text; });
  each("data-t-label", (one, text) => one.setAttribute("aria-label", text));
  each("data-t-placeholder", (one, text) => one.setAttribute("placeholder", text));
  each("data-t-title", (one, text) => one.setAttribute("title", text));
}

export function choose(chosen) {
  localStorage.setItem(KEPT, language = chosen);
  apply();
}

export function apply() {
  document.documentElement.lang = language;
  translate(document);
  listeners.forEach(listener => listener());
}

// What has words in it is made anew when the language changes.
export const onLanguage = listener => listeners.push(listener);
