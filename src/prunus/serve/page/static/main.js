// The shell: three views behind tabs. The address after # names the view, so that it can be linked and gone back to.

import { askKey } from "./key.js";
import { mount as ask } from "./ask.js";
import { mount as indexes } from "./indexes.js";
import { mount as prune } from "./prune.js";

const VIEWS = { ask, prune, indexes };
const tabs = [...document.querySelectorAll("[role=tab]")];
const mounted = new Set();

/** Show the view that the address names; a view is made when it is first shown. */
function show() {
  const named = location.hash.slice(1).split("/")[0];
  if (named === "content") return; // the link that skips to the content
  const name = named in VIEWS ? named : "ask";
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  for (const view of Object.keys(VIEWS)) document.getElementById(view).hidden = view !== name;
  if (!mounted.has(name)) {
    mounted.add(name);
    VIEWS[name](document.getElementById(name));
  }
}

for (const [place, tab] of tabs.entries()) {
  tab.addEventListener("click", (event) => {
    event.preventDefault(); // following the link would take the focus away from the tab
    if (location.hash !== tab.hash) history.pushState(null, "", tab.hash);
    show();
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (step === undefined && event.key !== " ") return;
    event.preventDefault();
    const next = tabs[((step ?? place) + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
document.getElementById("key-open").addEventListener("click", () => askKey());
addEventListener("popstate", show);
show();
