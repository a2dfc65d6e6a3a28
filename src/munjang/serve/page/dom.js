// Elements without markup: every text becomes a text node, so nothing that a document says can become part of the page.
import { t } from "./words.js";

// make("p", { class: "quiet", on: { click } }, "text", element, null): attributes by name, listeners under `on`; null children are left out.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

export const by = id => document.getElementById(id);

// An error where its result would have been, with the server's own words.
export function problem(error) {
  const field = error.field ? make("code", {}, error.field) : null;
  return make("div", { class: "problem", role: "alert" }, make("b", {}, t("problem")), field, make("p", {}, error.message || String(error)));
}

export const note = text => make("p", { class: "quiet" }, text);

const turns = new WeakMap();

// Runs work(signal) for a form: a newer run of the same form stops the older one; while it runs the form is busy, and errors show in `out`.
export async function working(form, out, work) {
  turns.get(form)?.abort();
  const turn = new AbortController();
  turns.set(form, turn);
  form.classList.add("busy");
  out.setAttribute("aria-busy", "true");
  try {
    await work(turn.signal);
  } catch (error) {
    if (turns.get(form) === turn && error.name !== "AbortError") out.replaceChildren(problem(error));
  } finally {
    if (turns.get(form) === turn) {
      form.classList.remove("busy");
      out.removeAttribute("aria-busy");
    }
  }
}

// Characters as Python counts them: code points, not UTF-16 units.
export function cut(text, start, stop) {
  return [...text].slice(start, stop).join("");
}

export const whole = number => number.toLocaleString();
export const decimal = (number, digits = 3) => Number(number).toFixed(digits).replace(/^-(0\.0*)$/, "$1");  // no −0.00
