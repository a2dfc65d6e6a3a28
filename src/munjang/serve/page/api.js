// Calls to the server that served this page. A refusal becomes an Error with the server's message; a missing key is asked for once.
import { by } from "./dom.js";
import { t } from "./words.js";

const KEY = "munjang-key";
let key = sessionStorage.getItem(KEY);

export class Refused extends Error {
  constructor(status, message, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

// ask("/api/similarity", { a: [...] }, { signal }) posts JSON; without a body it gets.
export async function ask(path, body, { method = body === undefined ? "GET" : "POST", signal } = {}) {
  const content = body === undefined ? undefined : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, body: content, signal, headers: headers(content && "application/json") });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, t("unreachable"));
  }
  if (answer.status === 401 && await askForKey()) return ask(path, body, { method, signal });
  const value = await answer.json().catch(() => null);
  if (!answer.ok) throw refusal(answer.status, value);
  return value;
}

// Sends a file and says how much of it has gone; XMLHttpRequest, because fetch cannot tell.
export function send(path, file, { sent, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers("application/octet-stream"))) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", event => sent(event.loaded, event.total));
    request.addEventListener("load", async () => {
      if (request.status === 401 && await askForKey()) return resolve(send(path, file, { sent, signal }));
      const value = parsed(request.responseText);
      return request.status < 300 ? resolve(value) : reject(refusal(request.status, value));
    });
    request.addEventListener("error", () => reject(new Refused(0, t("unreachable"))));
    request.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function headers(kind) {
  return { ...(kind && { "content-type": kind }), ...(key && { authorization: `Bearer ${key}` }) };
}

function refusal(status, value) {
  const error = value?.error;
  return new Refused(status, error?.message ?? `HTTP ${status}`, error?.field);
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

let asking = null;

// Resolves to whether there is a key to try; calls that come together share one question.
function askForKey() {
  asking ??= new Promise(resolve => {
    const dialog = by("key-dialog"), field = by("key");
    field.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      asking = null;
      const given = dialog.returnValue === "go" && field.value.trim();
      if (given) sessionStorage.setItem(KEY, key = given);
      field.value = "";
      resolve(Boolean(given));
    }, { once: true });
    by("key-leave").onclick = () => dialog.close();
    dialog.showModal();
  });
  return asking;
}
