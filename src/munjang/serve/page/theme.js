// Light or dark: the system's choice until the reader makes one.
import { by } from "./dom.js";

const KEPT = "munjang-theme", system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const listeners = [];

export const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
export const onTheme = listener => listeners.push(listener);

export function start() {
  const kept = localStorage.getItem(KEPT);
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  by("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem(KEPT, root.dataset.theme);
    listeners.forEach(listener => listener());
  });
  system.addEventListener("change", () => listeners.forEach(listener => listener()));
}
