// One panel at a time. The address says which, so that a reload, a link and the back button work; arrow keys go from tab to tab.
import { by } from "./dom.js";

const tabs = [...document.querySelectorAll("[role=tab]")], names = tabs.map(tab => tab.id.slice("tab-".length));

export function start() {
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => goTo(names[at]));
    tab.addEventListener("keydown", event => {
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const to = (next + tabs.length) % tabs.length;
      goTo(names[to]);
      tabs[to].focus();
    });
  });
  addEventListener("hashchange", show);
  show();
}

export function goTo(name) {
  if (location.hash === `#${name}`) show();
  else location.hash = name;
}

function show() {
  const wanted = location.hash.slice(1);
  const chosen = names.includes(wanted) ? wanted : names[0];
  tabs.forEach((tab, at) => {
    const on = names[at] === chosen;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    by(`panel-${names[at]}`).hidden = !on;
    if (on) centre(tab);
  });
}

// Not scrollIntoView: it would move the place from which Tab goes on, past the skip link.
function centre(tab) {
  const list = tab.parentElement;
  list.scrollLeft += tab.getBoundingClientRect().left - list.getBoundingClientRect().left - (list.clientWidth - tab.offsetWidth) / 2;
}
