// The kept page of a citation beside the answer, with its quotes marked. The frame runs no script and loads nothing.

import { addressOf, dateOf, el, outside, quoted, readOn } from "./dom.js";
import { Failed, post } from "./http.js";
import { failure } from "./key.js";

const MOST = 50; // places that the server marks at once

export class Snapshot {
  constructor() {
    this.title = el("h2", { tabindex: "-1", id: "snapshot-title" });
    this.facts = el("p", { class: "muted" });
    this.fate = el("p", { class: "small", role: "status" });
    this.place = el("span", { class: "muted number" });
    this.before = this.button("‹", "Previous citation", () => this.move(-1));
    this.after = this.button("›", "Next citation", () => this.move(1));
    this.room = el("div", { class: "frame" });
    this.node = el("aside", { class: "snapshot", hidden: true, "aria-labelledby": "snapshot-title",
      onkeydown: (event) => { if (event.key === "Escape") this.close(); } },
    el("div", { class: "row bar" }, this.before, this.place, this.after, el("span", { class: "grow" }), this.button("×", "Close the page", () => this.close())),
    this.title, this.facts, this.fate, this.room);
  }

  button(sign, label, act) {
    return el("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: act }, sign);
  }

  /** Show the page of a citation; `all` are the citations of its answer, `from` is the node that has the focus after. */
  open(citation, all, name, from) {
    this.all = all;
    this.name = name;
    this.from = from ?? this.from;
    this.node.hidden = false;
    this.node.parentElement.classList.add("beside");
    this.show(citation);
    this.title.focus({ preventScroll: true });
  }

  close() {
    this.node.hidden = true;
    this.node.parentElement.classList.remove("beside");
    this.room.replaceChildren();
    if (this.from?.isConnected) this.from.focus();
    this.from = null;
  }

  move(step) {
    const at = this.all.indexOf(this.citation) + step;
    if (this.all[at]) this.show(this.all[at]);
  }

  async show(citation) {
    this.citation = citation;
    const at = this.all.indexOf(citation);
    this.place.textContent = `citation ${at + 1} of ${this.all.length}`;
    this.before.disabled = at <= 0;
    this.after.disabled = at >= this.all.length - 1;
    this.title.replaceChildren(el("span", { class: citation.found ? "cite" : "cite lost" }, String(citation.number)), ` ${this.name(citation)}`);
    const facts = [citation.site, (citation.authors || []).join(", "), dateOf(citation.published || ""), readOn(citation), citation.place].filter(Boolean).join(" · ");
    this.facts.replaceChildren(...[facts, /^https?:/i.test(citation.url) && outside(addressOf(citation), citation.url)].filter(Boolean)
      .flatMap((part, place) => (place ? [el("br"), part] : [part])));
    this.fate.className = citation.found ? "verdict good" : "verdict bad";
    this.fate.textContent = citation.found ? "The quote stands in the page, word for word." : "This quote was not found in the page.";
    if (!citation.found) {
      this.room.replaceChildren(el("blockquote", {}, quoted(citation)));
      return;
    }
    const same = this.all.filter((one) => one.found && one.document === citation.document && one.snapshot === citation.snapshot && one !== citation);
    const places = [citation, ...same].slice(0, MOST).map((one) => ({ start: one.span.start, end: one.span.end }));
    try {
      const { address } = await post("v1/snapshots/show", { document: citation.document, snapshot: citation.snapshot, places });
      if (this.citation !== citation || this.node.hidden) return;
      this.room.replaceChildren(el("iframe", { sandbox: "", src: `${address}#quote`, title: `The page as it was read: ${this.name(citation)}`, referrerpolicy: "no-referrer" }));
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      if (this.citation === citation) this.room.replaceChildren(failure(error), el("blockquote", {}, quoted(citation)));
    }
  }
}
