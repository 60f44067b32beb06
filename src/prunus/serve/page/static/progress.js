// The stages of a running answer, with times and tokens.

import { count, el } from "./dom.js";

export class Progress {
  constructor() {
    this.started = performance.now();
    this.list = el("ol", { class: "steps" }, el("li", { class: "title" }, el("span", { class: "time" }, "since start")));
    this.head = el("summary", {});
    this.node = el("details", { class: "progress", open: true }, this.head, this.list);
    this.pages = { good: 0, bad: 0 };
    this.words = 0;
    this.tell("Working");
    this.timer = setInterval(() => this.tell(this.stage), 100);
  }

  get seconds() {
    return (performance.now() - this.started) / 1000;
  }

  tell(stage) {
    this.stage = stage;
    this.head.replaceChildren(el("span", { class: "spin", "aria-hidden": "true" }), `${stage} `, time(this.seconds));
  }

  /** Add a step, or change the last one of the same name. */
  step(name, text, bad = false) {
    const cells = [el("span", { class: "name" }, name), el("span", { class: bad ? "what bad" : "what" }, text), time(this.seconds)];
    if (this.last?.name === name && !["Search", "Page"].includes(name)) this.last.node.replaceChildren(...cells);
    else {
      this.last = { name, node: el("li", {}, ...cells) };
      this.list.append(this.last.node);
    }
  }

  /** Show an event; `label` says what to call a page without an address. */
  take(event, label) {
    if (event.event === "plan") {
      const queries = event.plan.queries.map((query) => `“${query.text}”`).join(", ");
      this.step("Plan", event.plan.needs_search ? `search for ${queries || "pages"}` : `no search: ${event.plan.reason}`);
      this.tell(event.plan.needs_search ? "Searching" : "Reading");
    } else if (event.event === "search") {
      const notes = event.warnings.length ? ` (${event.warnings.join("; ")})` : "";
      this.step("Search", `“${event.query}”: ${event.failure || plural(event.hits.length, "hit")}${notes}`, Boolean(event.failure));
      this.tell("Reading");
    } else if (event.event === "page") {
      this.step("Page", event.failure ? `${label(event.url)}: ${event.failure}` : event.title || label(event.url), Boolean(event.failure));
      this.tell("Choosing evidence");
    } else if (event.event === "kept") {
      this.step("Evidence", `${plural(event.tokens, "token")} from ${count(event.kept)} of ${plural(event.blocks, "block")}`);
      this.tell("Extracting");
    } else if (event.event === "extracted") {
      this.step("Extract", plural(event.passages.length, "passage"));
      this.tell("Writing");
    } else if (event.event === "token") {
      this.words += (event.text.match(/\S+/g) || []).length;
      this.step("Answer", plural(this.words, "word"));
    } else if (event.event === "citation") {
      this.checked = [...(this.checked || []), event.citation.found];
      this.step("Check", `${count(this.checked.filter(Boolean).length)} of ${plural(this.checked.length, "quote")} found in the pages`);
      this.tell("Checking");
    } else if (event.event === "usage") {
      const { prompt_tokens: read, completion_tokens: written, usd } = event.usage;
      if (read || written) this.step("Model", `${plural(read, "token")} read, ${count(written)} written${usd ? `, ${dollars(usd)}` : ""}`);
    }
  }

  /** Close the list under one line: the time and the tokens of the whole answer. */
  done(answer) {
    this.end();
    const { prompt_tokens: read, completion_tokens: written, usd, seconds } = answer.usage;
    const cost = read || written ? ` · ${count(read + written)} model tokens${usd ? `, ${dollars(usd)}` : ""}` : "";
    this.head.replaceChildren("Answered in ", time(this.seconds), cost);
    const stages = Object.entries(seconds).map(([name, one]) => `${name} ${short(one)}`);
    if (stages.length) this.step("Stages", stages.join(" · "));
    this.node.open = false;
  }

  fail() {
    this.end();
    this.head.replaceChildren("Failed after ", time(this.seconds));
  }

  nothing() {
    this.end();
    this.head.replaceChildren("Looked for ", time(this.seconds));
    this.node.open = false;
  }

  stop() {
    this.end();
    this.head.replaceChildren("Stopped after ", time(this.seconds));
  }

  end() {
    clearInterval(this.timer);
  }
}

function time(seconds) {
  return el("span", { class: "time" }, short(seconds));
}

function short(seconds) {
  if (seconds < 0.1) return `${(1000 * seconds).toFixed(0)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

function dollars(usd) {
  return usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

function plural(number, thing) {
  return `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
}
