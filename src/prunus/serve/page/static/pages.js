// The field for pages: addresses, pasted HTML or text, and files. Used wherever a request holds pages.

import { el } from "./dom.js";

const LARGEST = 11 * 1024 * 1024; // bytes; Base64 makes a third more of them, and the server takes 16 MiB by default

/**
 * Return `{node, value, names, fetches, clear}`: the field; a function that returns the pages as the server takes them,
 * `[{url} | {html} | {base64}]`; one that returns what to call them; one that says whether addresses are taken; and one
 * that empties the field. `changed(count)` is called with the number of pages after each change.
 */
export function pageField({ hint = "", changed = () => {} } = {}) {
  const files = [];
  const list = el("ul", { class: "files", "aria-label": "Files" });
  const said = el("p", { class: "muted", role: "status" });
  const addresses = el("textarea", { rows: 1, placeholder: "https://example.org/article", spellcheck: "false", name: "addresses" });
  const pasted = el("textarea", { rows: 3, placeholder: "<h1>…</h1> or plain text", spellcheck: "false", name: "pasted" });
  const chosen = el("input", { type: "file", multiple: true, class: "unseen", onchange: () => {
    const given = [...chosen.files]; // the list of the control is emptied by the next line
    chosen.value = "";
    add(given);
  } });
  const drop = el("label", {
    class: "drop",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); add([...event.dataTransfer.files]); },
  }, chosen, "Drop files here, or choose them: HTML, PDF, Word, Markdown, e-mail, …");

  async function add(given) {
    for (const file of given) {
      if (file.size > LARGEST) {
        said.textContent = `${file.name} is too large (${Math.round(file.size / 1048576)} MiB).`;
        continue;
      }
      try {
        files.push({ name: file.name, base64: await base64Of(file) });
        said.textContent = `${file.name} is added.`;
      } catch {
        said.textContent = `${file.name} cannot be read. Is it a folder?`;
      }
    }
    draw();
  }

  function draw() {
    list.replaceChildren(...files.map((file, place) => el("li", {}, el("span", {}, file.name), el("button", {
      type: "button", class: "quiet", "aria-label": `Remove ${file.name}`,
      onclick: () => { files.splice(place, 1); draw(); chosen.focus(); },
    }, "×"))));
    changed(names().length);
  }

  const named = el("label", { class: "field" }, "Addresses, one a line", addresses);
  const node = el("div", { class: "pages", oninput: () => changed(names().length) }, named,
    el("label", { class: "field" }, "Or paste a page", pasted),
    drop, list, said, hint && el("p", { class: "muted" }, hint));

  const given = () => named.hidden ? [] : addresses.value.split(/\s+/).filter(Boolean);

  function value() {
    const pages = given().map((url) => ({ url }));
    const text = pasted.value;
    if (text.trim()) pages.push(/<[a-z!]/i.test(text) ? { html: text } : { html: text, type: ".txt" });
    for (const file of files) pages.push({ base64: file.base64, type: suffixOf(file.name), name: file.name.slice(-300) });
    return pages;
  }

  function names() {
    return [...given(), ...(pasted.value.trim() ? ["Pasted page"] : []), ...files.map((file) => file.name)];
  }

  function clear() {
    addresses.value = pasted.value = said.textContent = "";
    files.length = 0;
    draw();
  }

  return { node, value, names, clear, fetches: (allowed) => { named.hidden = !allowed; } };
}

function suffixOf(name) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot).toLowerCase() : "";
}

function base64Of(file) {
  return new Promise((done, wrong) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => wrong(reader.error);
    reader.readAsDataURL(file);
  });
}
