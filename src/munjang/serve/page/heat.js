// Numbers with names on both sides → a table whose cells are coloured by their number.
import { decimal, make } from "./dom.js";

const BANDS = [0.52, 0.65];  // shares at which black ink becomes white: dark theme, light theme

// rows and columns: [{ text, title }]; pick(row, column) makes cells buttons, look(row) row names.
export function heatTable(values, rows, columns, { caption, pick, look, upright = false }) {
  const numbers = values.flat(), low = Math.min(0, ...numbers), high = Math.max(...numbers, low + 1e-9);
  const head = make("tr", {}, make("td"), ...columns.map(name => make("th", { scope: "col", title: name.title }, make("span", {}, name.text))));
  const body = values.map((line, row) => make("tr", {},
    make("th", { scope: "row", title: rows[row].title }, look ? make("button", { type: "button", on: { click: () => look(row) } }, rows[row].text) : rows[row].text),
    ...line.map((value, column) => cell(value, (value - low) / (high - low), pick && (() => pick(row, column)), says(rows[row], columns[column], value)))));
  const table = make("table", { class: upright ? "heat upright" : "heat" }, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, body));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, table);
}

function says(row, column, value) {
  return `${row.title ?? row.text} · ${column.title ?? column.text}: ${decimal(value)}`;
}

function cell(value, share, pick, title) {
  const text = decimal(value, 2), name = `${text}, ${title}`;  // what is heard begins with what is seen, so that it can be said to a machine
  const inside = pick ? make("button", { type: "button", "aria-label": name, on: { click: pick } }, text) : text;
  const found = make("td", { title, "data-band": String(BANDS.filter(band => share > band).length) }, inside);
  found.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  return found;
}
