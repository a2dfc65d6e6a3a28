// Starts the page: theme, tabs and panels, then the words, then what the server has.
import * as compare from "./compare.js";
import { by, problem } from "./dom.js";
import * as groups from "./groups.js";
import * as keywords from "./keywords.js";
import * as labels from "./labels.js";
import { refresh } from "./libraries.js";
import * as map from "./map_panel.js";
import * as search from "./search.js";
import * as tabs from "./tabs.js";
import * as theme from "./theme.js";
import * as upload from "./upload.js";
import { apply, choose, current, onLanguage } from "./words.js";

const buttons = [...document.querySelectorAll("[data-language]")];
onLanguage(() => buttons.forEach(button => button.setAttribute("aria-pressed", String(button.dataset.language === current()))));
buttons.forEach(button => button.addEventListener("click", () => choose(button.dataset.language)));
document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); by("main").focus(); });

for (const each of [theme, tabs, search, compare, keywords, groups, labels, map, upload]) each.start();
apply();
try {
  await refresh();
  await Promise.all([search.open(), labels.open()]);
} catch (error) {
  by("search-out").replaceChildren(problem(error));
}
document.documentElement.dataset.ready = "true";
