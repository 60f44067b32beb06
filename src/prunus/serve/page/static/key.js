// The key of this server. It is kept in sessionStorage alone: it ends with the tab.

import { el, problem } from "./dom.js";

const NAME = "prunus-key";
const listeners = [];
let asking = null;

export function key() {
  return sessionStorage.getItem(NAME) || "";
}

/** Call a function after each new key: a view loads what it shows again. */
export function onKey(changed) {
  listeners.push(changed);
}

/** Ask for a key in a dialog; the promise holds whether one was given. Calls at the same time share one dialog. */
export function askKey(message = "") {
  asking ??= ask(message).then((given) => {
    asking = null;
    if (given) for (const changed of listeners) changed();
    return given;
  });
  return asking;
}

/** Return a line on an error of the server; where it wants a key, with a button that asks for one. */
export function failure(error) {
  if (error.status !== 401) return problem(error.message);
  const line = problem(`${key() ? "This key does not work." : "This server needs a key."} `);
  line.append(el("button", { type: "button", class: "quiet small", onclick: () => askKey() }, "Give a key"));
  return line;
}

function ask(message) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key-input");
  const wrong = document.getElementById("key-problem");
  wrong.textContent = message;
  wrong.hidden = !message;
  input.value = key();
  dialog.returnValue = "";
  document.getElementById("key-cancel").onclick = () => dialog.close("");
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      const given = input.value.trim();
      input.value = "";
      if (dialog.returnValue !== "use") return done(false);
      if (given) sessionStorage.setItem(NAME, given);
      else sessionStorage.removeItem(NAME);
      done(Boolean(given));
    }, { once: true });
    dialog.showModal();
    input.focus();
  });
}
