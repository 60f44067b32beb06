// The view Ask: a question, its answer as it is written, and each citation where it stands in its page.

import { addressOf, dateOf, el, outside, problem, quoted, readOn } from "./dom.js";
import { events, get } from "./http.js";
import { failure, onKey } from "./key.js";
import { markdown } from "./markdown.js";
import { pageField } from "./pages.js";
import { Progress } from "./progress.js";
import { open as openPruned } from "./prune.js";
import { Snapshot } from "./snapshot.js";

const TURNS = 20; // messages that the server takes
const LONGEST = 20_000; // characters of a message that the server takes
const SHORT = 160; // characters of a note that are shown
const ABOUT_THE_ANSWER = ["citations", "answer"]; // failures that are said in plain sight
const SUPPORT = "Support: how far the quote bears out the sentence that cites it, from 0 to 100 %.";
const PAUSE = 80; // milliseconds between two drawings of an answer that is being written

/** Fill the section of this view; called once, when it is first shown. */
export function mount(section) {
  const snapshot = new Snapshot();
  const said = el("p", { class: "unseen", role: "status" });
  const talk = el("div", { class: "talk" });
  const form = new Form((body, names) => ask(body, names));
  const lead = el("h1", { class: "lead" }, "Ask, and check every citation where it stands");
  const column = el("div", { class: "column" }, lead, talk, form.node);
  section.append(said, el("div", { class: "desk" }, column, snapshot.node));
  let turns = [];
  let running = null;

  form.onstop = () => running?.abort();
  form.onnew = () => {
    running?.abort();
    turns = [];
    talk.replaceChildren();
    snapshot.close();
    form.pages.clear();
    lead.className = "lead";
    form.began(false);
    form.question.focus();
  };

  async function ask(body, names) {
    running = new AbortController();
    const { signal } = running;
    const turn = new Turn(body.question, names, snapshot);
    talk.append(turn.node);
    lead.className = "unseen";
    form.began(true);
    form.busy(true);
    said.textContent = "Working on the answer.";
    turn.node.scrollIntoView({ block: "start" });
    try {
      for await (const event of events("v1/ask", { ...body, turns, stream: true, keep: true }, signal)) {
        turn.take(event);
        if (event.event === "done") {
          const messages = [{ role: "user", content: body.question }, { role: "assistant", content: event.answer.text }];
          turns = [...turns, ...messages.map((one) => ({ ...one, content: one.content.slice(0, LONGEST) }))].slice(-TURNS);
        }
      }
      if (!turn.ended) turn.fail("The stream ended before the answer was complete.");
      if (turn.failed) form.question.value ||= body.question;
    } catch (error) {
      if (error.name === "AbortError") turn.stop();
      else {
        form.question.value ||= body.question; // nobody types it twice
        if (form.point(error)) turn.node.remove();
        else turn.fail(error.message, error.code);
      }
    } finally {
      if (running?.signal === signal) {
        running = null;
        form.busy(false);
      }
      said.textContent = turn.summary;
    }
  }

  form.load();
  onKey(() => form.load());
}

/** The box for the question, with what it may be answered from. */
class Form {
  constructor(send) {
    this.count = el("summary", {});
    const counted = (pages) => {
      this.count.textContent = pages ? `Pages and files (${pages})` : "Pages and files";
      this.offer(Boolean(pages));
    };
    this.pages = pageField({ changed: counted });
    this.question = el("textarea", {
      rows: 2, required: true, maxlength: LONGEST, id: "question", placeholder: "Your question",
      onkeydown: (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.node.requestSubmit();
        }
      },
    });
    this.wrong = el("div", {});
    this.search = el("input", { type: "checkbox", onchange: () => { this.chosen = true; } });
    this.searching = el("label", { class: "check", hidden: true }, this.search, "Search the web");
    this.indexes = el("span", { class: "row" });
    this.budget = el("input", { type: "number", min: 1, step: 1, placeholder: "chosen for you", inputmode: "numeric" });
    this.material = el("details", { class: "material" }, this.count, this.pages.node);
    this.go = el("button", { type: "submit" }, "Ask");
    this.halt = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.onstop() }, "Stop");
    this.fresh = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.onnew() }, "New conversation");
    this.hint = el("p", { class: "muted" });
    this.node = el("form", { class: "card ask", "aria-label": "Question", onsubmit: (event) => { event.preventDefault(); this.submit(send); } },
      el("label", { class: "unseen", for: "question" }, "Question"), this.question, this.material,
      el("details", {}, el("summary", {}, "Evidence (tokens)"), el("label", { class: "field narrow" }, "Tokens of evidence at most", this.budget)),
      this.wrong,
      el("div", { class: "row" }, this.searching, this.indexes, el("span", { class: "grow" }), this.fresh, this.halt, this.go),
      this.hint);
    counted(0);
  }

  /** Choose what is asked unless somebody chose it: given pages alone; else the web, or the only index. */
  offer(hasPages) {
    if (this.chosen || !this.boxes) return;
    this.search.checked = !hasPages && !this.searching.hidden;
    if (this.boxes.length === 1) this.boxes[0].checked = !hasPages && this.searching.hidden;
  }

  /** Learn what this server allows, and offer that. */
  async load() {
    const load = this.loading = {}; // where a new key comes meanwhile, the later load counts
    try {
      const choices = await get("v1/choices");
      if (this.loading !== load) return;
      this.wrong.replaceChildren();
      this.indexes.replaceChildren();
      this.searching.hidden = !choices.search;
      this.budget.max = choices.budget;
      this.pages.fetches(choices.fetch);
      this.material.open = !choices.search && !choices.indexes.length;
      this.boxes = choices.indexes.map((name) => {
        const box = el("input", { type: "checkbox", value: name, onchange: () => { this.chosen = true; } });
        this.indexes.append(el("label", { class: "check" }, box, `Index: ${name}`));
        return box;
      });
      this.chosen = false;
      this.offer(Boolean(this.pages.names().length));
      this.hint.textContent = choices.model ? "" : "No model is set up here: answers are quotes of the pages.";
    } catch (error) {
      if (this.loading === load) this.wrong.replaceChildren(failure(error));
    }
    if (document.activeElement === document.body) this.question.focus();
  }

  submit(send) {
    const question = this.question.value.trim();
    if (!question || this.go.disabled) return;
    const pages = this.pages.value();
    const indexes = (this.boxes || []).filter((box) => box.checked).map((box) => box.value);
    const search = this.search.checked;
    this.wrong.replaceChildren();
    if (!pages.length && !indexes.length && !search) {
      this.material.open = true;
      this.wrong.replaceChildren(problem("Give a page or a file, or choose what to search."));
      return;
    }
    const body = { question, pages, indexes, search };
    if (this.budget.value) body.budget = Number(this.budget.value);
    send(body, this.pages.names());
    this.question.value = "";
  }

  /** Show an error at its field; false where it belongs to no field. */
  point(error) {
    if (!/^(pages|indexes|budget|question|search|key)/.test(error.param) && ![401, 403, 413].includes(error.status)) return false;
    if (error.param.startsWith("pages")) this.material.open = true;
    this.wrong.replaceChildren(failure(error));
    return true;
  }

  busy(is) {
    this.go.disabled = is;
    this.halt.hidden = !is;
  }

  began(has) {
    this.fresh.hidden = !has;
    if (has) this.material.open = false;
  }
}

/** One question with its answer. */
class Turn {
  constructor(question, names, snapshot) {
    this.snapshot = snapshot;
    this.question = question;
    this.names = names;
    this.text = "";
    this.citations = [];
    this.hits = new Map(); // by address
    this.passages = new Map(); // by document
    this.read = [];
    this.ended = false;
    this.summary = "";
    this.progress = new Progress();
    this.above = el("div", {});
    this.answer = el("div", { class: "answer", "aria-busy": "true" });
    this.below = el("div", {});
    this.node = el("article", { class: "card turn" }, el("h2", { class: "asking" }, question), this.progress.node, this.above, this.answer, this.below);
  }

  take(event) {
    this.progress.take(event, (url) => this.label(url));
    if (event.event === "search") for (const hit of event.hits) this.hit(event.query, hit);
    else if (event.event === "page") this.read.push(event);
    else if (event.event === "extracted") this.extracted(event.passages);
    else if (event.event === "token") {
      this.text += event.text;
      this.timer ??= setTimeout(() => { this.timer = null; this.draw(); }, PAUSE);
    } else if (event.event === "citation") this.citations.push(event.citation);
    else if (event.event === "done") this.done(event.answer);
    else if (event.event === "error") this.fail(event.message, event.code);
  }

  hit(query, hit) {
    const known = this.hits.get(hit.url) || [];
    this.hits.set(hit.url, [...known, `hit ${hit.rank || "?"} of “${query}”${hit.engine ? ` (${hit.engine})` : ""}`]);
  }

  extracted(passages) {
    for (const passage of passages) {
      const document = passage.spans[0]?.document;
      this.passages.set(document, [...(this.passages.get(document) || []), passage.score]);
    }
  }

  /** Return what to call a page: its address, or the name of the file that was sent. */
  label(url) {
    const place = /^pages\.(\d+)$/.exec(url);
    if (place) return this.names[Number(place[1])] || url;
    return url || this.names[0] || "the page";
  }

  draw() {
    this.answer.replaceChildren(markdown(this.text, (number) => this.mark(number)));
  }

  /** Return the node of a mark [number]: a button where a citation has the number. */
  mark(number) {
    const cited = this.citations.filter((one) => one.number === number);
    if (!cited.length) return this.ended ? `[${number}]` : el("span", { class: "cite pending" }, String(number));
    const good = cited.some((one) => one.found);
    return el("button", {
      type: "button", class: good ? "cite" : "cite lost",
      "aria-label": `Citation ${number}: ${this.name(cited[0])}${good ? "" : ", quote not found"}`,
      onclick: (event) => this.open(nearest(cited, event.currentTarget), event.currentTarget),
    }, String(number));
  }

  name(citation) {
    return citation.title || citation.site || this.label(citation.url);
  }

  open(citation, from) {
    this.snapshot.open(citation, this.citations, (one) => this.name(one), from);
  }

  done(answer) {
    clearTimeout(this.timer);
    this.ended = true;
    this.text = answer.text;
    this.citations = answer.citations;
    this.draw();
    const reasons = new Map((answer.claims || []).filter((one) => one.reason).map((one) => [one.text, sentence(one.reason)]));
    const rest = markSentences(this.answer, answer.unsupported, "no evidence found", (one) => reasons.get(one) || "No evidence for this sentence was found in the pages that were read.");
    markSentences(this.answer, [...reasons.keys()].filter((one) => !answer.unsupported.includes(one)), "in part", (one) => reasons.get(one));
    this.answer.removeAttribute("aria-busy");
    this.progress.done(answer);
    const missing = answer.unsupported.length;
    const without = missing === 1 ? "No evidence was found for one sentence" : `No evidence was found for ${missing} sentences`;
    const model = modelFailure(answer.failures);
    if (model) this.above.append(el("p", { class: "warning" }, model));
    const plain = ABOUT_THE_ANSWER.map((name) => answer.failures[name]).filter(Boolean);
    const details = [
      ...answer.warnings,
      ...Object.entries(answer.failures).filter(([name]) => !ABOUT_THE_ANSWER.includes(name)).map(([name, one]) => `${this.label(name)}: ${one}`),
    ];
    (model ? this.above : this.below).append(...detailsOf(details));
    this.below.append(...[
      ...plain.map((one) => el("p", { class: "warning" }, sentence(one))),
      missing ? el("p", { class: "warning" }, `${without}; ${missing === 1 ? "it is" : "they are"} marked.`) : null,
      rest.length ? el("ul", { class: "small" }, rest.map((one) => el("li", {}, el("mark", { class: "unsupported" }, one)))) : null,
      reasons.size ? el("ul", { class: "small reasons" }, [...reasons].map(([one, why]) => el("li", {}, `“${one}” ${why}`))) : null,
      this.sources(), this.also(), this.copying(),
    ].filter(Boolean));
    const good = this.citations.filter((one) => one.found).length;
    this.summary = `The answer is complete: ${good} of ${this.citations.length} quotes were found in their pages`
      + `.${missing ? ` ${without}.` : ""}${model ? ` ${model}` : ""}`;
  }

  fail(message, code = "") {
    this.failed = true;
    this.end();
    if (code === "nothing_found") {
      this.progress.nothing();
      this.summary = `Nothing found: ${message}.`;
      this.below.append(el("p", { class: "nothing" }, this.summary), ...[this.also()].filter(Boolean));
      return;
    }
    this.progress.fail();
    this.below.append(problem(message));
    this.summary = message;
  }

  stop() {
    this.end();
    this.progress.stop();
    this.below.append(el("p", { class: "muted" }, "Stopped."));
    this.summary = "Stopped.";
  }

  end() {
    clearTimeout(this.timer);
    this.ended = true;
    this.answer.removeAttribute("aria-busy");
    if (this.text) this.draw();
  }

  /** Return the list of the cited pages: who wrote them and when, their quotes, and why they were chosen. */
  sources() {
    if (!this.citations.length) return null;
    const groups = new Map();
    for (const citation of this.citations) {
      const key = `${citation.document} ${citation.snapshot}`;
      groups.set(key, [...(groups.get(key) || []), citation]);
    }
    const items = [...groups.values()].map((cited) => {
      const [first] = cited;
      const facts = [first.site, (first.authors || []).join(", "), dateOf(first.published || ""), readOn(first)].filter(Boolean).join(" · ");
      return el("li", { class: "cited" },
        el("div", { class: "title" }, outside(addressOf(first), this.name(first))),
        facts && el("div", { class: "muted" }, facts),
        el("ul", { class: "quotes" }, cited.map((one) => el("li", {}, el("button", {
          type: "button", class: "quote", onclick: (event) => this.open(one, event.currentTarget),
        }, el("span", { class: one.found ? "cite" : "cite lost" }, String(one.number)), el("q", {}, quoted(one)),
        fateOf(one))))),
        el("div", { class: "muted small" }, this.why(first)),
        cited.some((one) => one.found) && el("button", {
          type: "button", class: "quiet small", onclick: () => openPruned({ snapshot: { document: first.document, snapshot: first.snapshot }, question: this.question }),
        }, "What was pruned of this page"));
    });
    return el("section", { class: "sources", "aria-label": "Sources" }, el("h3", {}, "Sources"), el("ul", {}, items));
  }

  /** Return why a page was chosen, where the events told it. */
  why(citation) {
    const reasons = [...(this.hits.get(citation.url) || [])];
    const scores = this.passages.get(citation.document) || [];
    if (scores.length) {
      const best = Math.max(...scores).toFixed(2);
      const passages = scores.length === 1 ? `one passage, score ${best}` : `${scores.length} passages, best score ${best}`;
      reasons.push(`${passages} (the higher, the better it fits the question)`);
    }
    return reasons.length ? `Chosen for ${reasons.join("; ")}` : "";
  }

  /** Return the list of pages that were read and are not cited. */
  also() {
    const cited = new Set(this.citations.map((one) => one.url));
    const rest = this.read.filter((page) => !page.failure && !cited.has(page.url));
    if (!rest.length) return null;
    return el("details", {}, el("summary", {}, `Read and not cited: ${rest.length}`),
      el("ul", { class: "small" }, rest.map((page) => el("li", {}, outside(page.url, page.title || this.label(page.url))))));
  }

  copying() {
    const said = el("span", { class: "muted", role: "status" });
    return el("div", { class: "row" }, el("button", {
      type: "button", class: "quiet", onclick: async () => { said.textContent = await copy(this.asMarkdown()) ? "Copied." : "Copying is not allowed here."; },
    }, "Copy as Markdown"), said);
  }

  asMarkdown() {
    const plain = (text) => text.replace(/\s+/g, " ").replace(/[\\`*_\[\]<>]/g, "\\$&");
    const sources = this.citations.map((one) => `- [${one.number}] ${plain(this.name(one))}`
      + `${one.published ? `, ${one.published}` : ""}${one.place ? `, ${plain(one.place)}` : ""}${/^https?:/.test(one.url) ? `, <${one.url.replace(/[<>\s]/g, "")}>` : ""}: “${plain(one.quote)}”`
      + `${one.found ? "" : " (not found in the page)"}`);
    return `${this.text}\n\n## Sources\n\n${sources.join("\n")}\n`;
  }
}

/** Return a line on a language model that failed; "" where none did. */
function modelFailure(failures) {
  if (failures.generator) return "The language model could not be used; these are quotes of the pages.";
  const parts = [failures.planner && "plan the search", failures.extractor && "choose the passages of some pages"].filter(Boolean);
  return parts.length ? `The language model could not be used to ${parts.join(" and to ")}; this was done without it.` : "";
}

/** Return notes behind one line that opens; long ones are cut, and whole in a tooltip. */
function detailsOf(notes) {
  if (!notes.length) return [];
  return [el("details", { class: "notes" }, el("summary", {}, `Details (${notes.length})`),
    el("ul", { class: "small" }, notes.map((one) => (one.length > SHORT ? el("li", { title: one }, `${one.slice(0, SHORT)}…`) : el("li", {}, one)))))];
}

function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

/** Return a line on a quote: whether its page has it, and how well it bears out the sentence that cites it. */
function fateOf(citation) {
  if (!citation.found) return el("span", { class: "verdict bad" }, "not found in the page");
  const percent = Math.round(100 * citation.support);
  const sure = [citation.how, citation.confidence == null ? "" : `${Math.round(100 * citation.confidence)} % likely to answer`].filter(Boolean);
  const said = `${citation.place ? `${citation.place}: ` : ""}word for word in the page${sure.length ? `; ${sure.join(", ")}` : ""}`;
  if (percent < 50) return el("span", { class: "verdict weak", title: SUPPORT }, `${said}, but hardly supports the sentence (${percent} %)`);
  return el("span", { class: "verdict good", title: SUPPORT }, percent > 99 ? said : `${said}, support ${percent} %`);
}

/** Return the citation whose quote shares most words with the sentence before a mark. */
function nearest(cited, button) {
  if (cited.length === 1) return cited[0];
  const block = button.closest("p, tr, li, blockquote, h3, h4, h5, h6") || button.parentElement;
  const texts = [];
  const walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node && !button.contains(node); node = walk.nextNode()) {
    if (!node.parentElement.closest("button")) texts.push(node.data);
  }
  const words = new Set(wordsOf(texts.join(" ").slice(-400)));
  const shared = (one) => { const own = wordsOf(one.quote); return own.filter((word) => words.has(word)).length / (own.length || 1); };
  return cited.reduce((best, one) => (shared(one) > shared(best) ? one : best));
}

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
}

/** Mark sentences in the answer with a badge; return those that are not found in it. White space and signs of Markdown do not count. */
function markSentences(answer, sentences, badge, why) {
  const rest = [];
  for (const sentence of sentences) {
    const places = []; // of each letter: its text node, and its offset there
    let letters = "";
    const walk = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.parentElement.closest("button, .badge, .pending")) continue;
      for (let at = 0; at < node.data.length; at++) {
        if (/[\s*_`|>#+\[\]-]/.test(node.data[at])) continue;
        letters += node.data[at];
        places.push([node, at]);
      }
    }
    const wanted = sentence.replace(/\[\d{1,4}\]/g, "").replace(/[\s*_`|>#+\[\]-]/g, "");
    const start = wanted ? letters.indexOf(wanted) : -1;
    if (start < 0) {
      rest.push(sentence);
      continue;
    }
    const parts = new Map(); // text node -> first and last offset
    for (const [node, at] of places.slice(start, start + wanted.length)) parts.set(node, [parts.get(node)?.[0] ?? at, at]);
    let last = null;
    for (const [node, [from, to]] of parts) {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to + 1);
      last = el("mark", { class: "unsupported" });
      range.surroundContents(last);
    }
    last.after(el("span", { class: "badge", title: why(sentence) }, badge));
  }
  return rest;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = el("textarea", { class: "unseen" });
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy"); // where the page is not on a secure address
    box.remove();
    return done;
  }
}
