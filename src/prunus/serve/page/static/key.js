// The key of this server. It is kept in sessionStorage alone: it ends with the tab.

const NAME = "prunus-key";
let asking = null;

export function key() {
  return sessionStorage.getItem(NAME) || "";
}

/** Ask for a key in a dialog; the promise holds whether one was given. Calls at the same time share one dialog. */
export function askKey(message = "") {
  asking ??= ask(message).finally(() => { asking = null; });
  return asking;
}

function ask(message) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key-input");
  const problem = document.getElementById("key-problem");
  problem.textContent = message;
  problem.hidden = !message;
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
