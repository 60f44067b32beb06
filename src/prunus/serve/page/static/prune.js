// The view Prune: the blocks of pages as a heat map, kept and dropped, and a slider that prunes to another budget.

import { count, el, outside, problem } from "./dom.js";
import { get, post } from "./http.js";
import { failure, onKey } from "./key.js";
import { pageField } from "./pages.js";

const STEPS = 10; // shades of the scale
const SHORT = 2; // a run of up to this many dropped blocks is shown; a longer run is folded
const PART = 300; // rows that a fold shows at once
const CELLS = 1200; // cells of the map at most
const LOWEST = 50; // tokens at the left end of the slider
const WAYS = [["heat", "Heat map"], ["html", "HTML"], ["markdown", "Markdown"], ["text", "Text"]];

let view = null;
let wanted = null;

/** Show what is pruned of a page: of `snapshot`, the fields of a citation that name a kept page, or of `pages` as the server takes them. */
export function open({ pages = [], snapshot = null, question, budget = null }) {
  wanted = { pages, snapshot, question, budget };
  location.hash = "#prune";
  if (view && wanted) view.begin(); // the change of the address may have shown it already
}

/** Fill the section of this view; called once, when it is first shown. */
export function mount(section) {
  const question = el("input", { name: "question", required: true, maxlength: 20000, autocomplete: "off", placeholder: "When did the bridge open?" });
  const field = pageField();
  const run = el("button", {}, "Prune");
  const said = el("div", {});
  const result = el("div", { class: "pruned" });
  let limits = null; // what the server allows; asked for once, with the first page
  const form = el("form", {
    class: "card", onsubmit: (event) => {
      event.preventDefault();
      start({ pages: field.value(), question: question.value, budget: null });
    },
  },
  el("h2", {}, "Prune"),
  el("p", { class: "muted" }, "Give a page and a question. Each block of the page is shown with its score, and whether it is kept within the budget."),
  el("label", { class: "field" }, "Question", question), field.node, el("div", { class: "row end" }, run));
  section.append(form, said, result);

  async function start(asked) {
    if (!asked.pages.length && !asked.snapshot) {
      said.replaceChildren(problem("Give an address, a pasted page or a file."));
      return;
    }
    run.disabled = true;
    said.replaceChildren(el("p", { class: "muted", role: "status" }, "Reading and pruning …"));
    result.replaceChildren();
    try {
      limits ??= get("v1/choices");
      const pruning = new Pruning(asked);
      const [{ budget }] = await Promise.all([limits, pruning.again()]);
      if (asked.budget === null) await pruning.toTenth(budget);
      said.replaceChildren();
      draw(result, pruning, budget);
      result.scrollIntoView({ block: "start", behavior: "smooth" });
    } catch (error) {
      limits = null;
      said.replaceChildren(failure(error));
    } finally {
      run.disabled = false;
    }
  }

  view = {
    begin() {
      const asked = wanted;
      wanted = null;
      question.value = asked.question;
      field.clear();
      form.elements.addresses.value = asked.pages.map((page) => page.url).filter(Boolean).join("\n");
      start(asked);
    },
  };
  onKey(() => {
    limits = null;
    if (!run.disabled) said.replaceChildren();
  });
  if (wanted) view.begin();
}

/** One pruning and its latest result. The server keeps the pages for a while; when they are gone they are sent again. */
class Pruning {
  constructor({ pages, snapshot, question, budget }) {
    Object.assign(this, { question, budget, also: [], kept: "", got: null });
    this.source = { ...(snapshot ? { snapshot } : { pages }), keep: true };
  }

  async again() {
    const body = { question: this.question, budget: this.budget, also: this.also, all_blocks: true };
    try {
      this.got = await post("v1/prune", { ...body, ...(this.kept ? { kept: this.kept } : this.source) });
    } catch (error) {
      if (!this.kept || error.param !== "kept") throw error;
      this.got = await post("v1/prune", { ...body, ...this.source });
    }
    this.kept = this.got.kept;
    this.budget ??= this.got.budget;
  }

  /** Prune to a tenth of the pages: at the server's own budget a page of usual size would be kept whole. */
  async toTenth(largest) {
    const tenth = Math.min(largest, Math.max(LOWEST, Math.round(this.got.tokens_before / 100) * 10));
    if (tenth >= this.got.budget) return;
    this.budget = tenth;
    await this.again();
  }
}

/** Draw a result, and draw it again after each move of the slider. */
function draw(result, pruning, largest) {
  const most = Math.max(2 * LOWEST, Math.min(largest, Math.max(pruning.got.tokens_before, pruning.budget)));
  const opened = new Set(); // numbers of the blocks at which folds are open
  let way = "heat";
  let working = false;
  let stale = false;

  const figures = el("div", { class: "figures" });
  const said = el("div", { role: "status" });
  const times = el("div", { class: "times" });
  const body = el("div", { class: "pruned-body", id: "prune-body", role: "tabpanel", tabindex: -1 });
  const slider = el("input", { type: "range", min: 0, max: 1000, id: "prune-slider", "aria-label": "Budget in tokens" });
  const exact = el("input", { type: "number", min: 1, inputmode: "numeric", "aria-label": "Exact budget in tokens" });
  slider.addEventListener("input", () => move(budgetAt(slider.value, most)));
  exact.addEventListener("change", () => move(Math.max(1, Math.round(Number(exact.value)) || pruning.budget)));

  const tabs = WAYS.map(([name, label]) => el("button", {
    type: "button", role: "tab", class: "quiet", id: `prune-${name}`, "aria-controls": "prune-body", onclick: () => choose(name),
  }, label));
  const list = el("div", { role: "tablist", class: "ways", "aria-label": "Show", onkeydown: (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  } }, tabs);

  function move(budget) {
    pruning.budget = budget;
    label();
    refresh();
  }

  function label() {
    slider.value = placeOf(pruning.budget, most);
    slider.setAttribute("aria-valuetext", `${count(pruning.budget)} tokens`);
    exact.value = pruning.budget;
  }

  function choose(name) {
    way = name;
    pruning.also = name === "heat" || name === "html" ? [] : [name];
    if (written(pruning.got, way)) show();
    else refresh();
  }

  /** Prune again; moves of the slider meanwhile are one more pruning at the end. */
  async function refresh() {
    stale = true;
    if (working) return;
    working = true;
    result.classList.add("working");
    while (stale) {
      stale = false;
      try {
        await pruning.again();
        said.replaceChildren();
        show();
      } catch (error) {
        said.replaceChildren(failure(error));
      }
    }
    working = false;
    result.classList.remove("working");
  }

  function show() {
    const { got } = pruning;
    for (const [place, tab] of tabs.entries()) {
      const chosen = WAYS[place][0] === way;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    body.setAttribute("aria-labelledby", `prune-${way}`);
    const kept = got.blocks.filter((block) => block.kept).length;
    const share = got.tokens_before > 0 ? (100 * got.tokens) / got.tokens_before : 100;
    figures.replaceChildren(
      el("p", { class: "big number" }, count(got.tokens_before), el("span", { class: "to", "aria-label": "to" }, " → "), el("b", {}, count(got.tokens)), el("span", { class: "unit" }, " tokens")),
      el("p", { class: "muted number" }, `${share < 10 ? share.toFixed(1) : Math.round(share)} % of the ${got.documents.length > 1 ? "pages" : "page"} · ${count(kept)} of ${count(got.blocks.length)} blocks kept · blocks of up to ${got.max_words} words`));
    times.replaceChildren(...timesOf(got));
    const notes = [...got.warnings, ...Object.values(got.failures)].map((text) => el("p", { class: "warning", dir: "auto" }, text));
    const shown = written(got, way);
    if (way === "heat") body.replaceChildren(...notes, ...new Heat(got, opened).nodes());
    else if (shown) body.replaceChildren(...notes, ...(way === "markdown" ? [el("p", { class: "muted" }, "Tables with merged cells stay HTML: Markdown has no merged cells.")] : []), outputOf(shown));
  }

  result.replaceChildren(
    el("div", { class: "card" }, figures,
      el("div", { class: "budget" }, el("label", { for: "prune-slider" }, "Budget"), slider, exact, el("span", { class: "muted" }, "tokens")),
      said, times),
    list, body);
  label();
  show();
}

/** Return the budget at a place of the slider: even steps look even on a logarithmic scale. */
function budgetAt(place, most) {
  const raw = LOWEST * (most / LOWEST) ** (place / 1000);
  const step = raw < 500 ? 10 : raw < 5000 ? 50 : 100;
  return Number(place) === 1000 ? most : Math.max(LOWEST, Math.round(raw / step) * step);
}

function placeOf(budget, most) {
  return Math.round((1000 * Math.log(Math.max(1, budget / LOWEST))) / Math.log(most / LOWEST));
}

function timesOf(got) {
  const stages = got.stages.map((stage) => Object.entries(stage).filter(([name, value]) => name !== "seconds" && name !== "stage" && typeof value === "number")
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${count(value)}`).join(", ")).map((told, place) => told && el("span", { class: "muted" }, `stage ${place + 1}: ${told}`));
  const parts = Object.entries(got.seconds);
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  return [
    el("span", { class: "muted number", title: parts.map(([stage, seconds]) => `${stage}: ${milliseconds(seconds)}`).join("\n") },
      `pruned in ${total < 0.1 ? milliseconds(total) : `${total.toFixed(1)} s`}`),
    ...stages.filter(Boolean),
  ];
}

function milliseconds(seconds) {
  const value = 1000 * seconds;
  return `${value < 10 ? value.toFixed(1) : count(Math.round(value))} ms`;
}

/** Return `{output, tokens}` of the form that a tab shows; undefined where the server was not asked for it. */
function written(got, way) {
  return way === "heat" || way === "html" ? got : got.also[way];
}

function outputOf({ output, tokens }) {
  const text = el("pre", { class: "output", dir: "auto", tabindex: 0, "aria-label": "What is kept" }, output);
  const copy = el("button", { type: "button", class: "quiet copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(output);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text); // a browser may forbid it: then the text is ready to be copied by hand
    }
  } }, "Copy");
  return el("div", { class: "output-box" }, el("div", { class: "row" }, el("span", { class: "muted number grow" }, `${count(tokens)} tokens in this form`), copy), text);
}

/** The heat map of one result. */
class Heat {
  constructor(got, opened) {
    Object.assign(this, { got, opened, bounds: new Map() });
    const stage = Math.max(1, ...got.blocks.map((block) => block.stage));
    for (const block of got.blocks) {
      const [low, high] = this.bounds.get(block.stage) || [block.score, block.score];
      this.bounds.set(block.stage, [Math.min(low, block.score), Math.max(high, block.score)]);
    }
    const ranked = [...got.blocks].sort((a, b) => b.stage - a.stage || b.score - a.score);
    this.ranks = new Map(ranked.map((block, place) => [block.index, place + 1]));
    this.least = Math.min(...got.blocks.filter((block) => block.kept && block.role !== "header" && block.stage === stage).map((block) => block.score));
    this.stage = stage;
  }

  nodes() {
    return [this.legend(), ...this.got.documents.map((page) => this.page(page))];
  }

  legend() {
    const [low, high] = this.bounds.get(this.stage) || [0, 0];
    return el("div", { class: "legend muted" },
      el("span", { class: "number" }, `score ${low.toFixed(2)}`, el("span", { class: "scale", "aria-hidden": "true" }, Array.from({ length: STEPS }, (_, step) => el("i", { class: `s${step}` }))), high.toFixed(2)),
      el("span", {}, el("b", { class: "yes" }, "✓ kept")),
      el("span", {}, "– dropped (click a run to open it)"));
  }

  shade({ stage, score }) {
    const [low, high] = this.bounds.get(stage);
    return high > low ? `s${Math.min(STEPS - 1, Math.floor(((score - low) / (high - low)) * STEPS))}` : "s0";
  }

  page(page) {
    const blocks = this.got.blocks.filter((block) => block.document === page.number);
    const top = sectionsOf(blocks, page.outline || []);
    const several = this.got.documents.length > 1;
    return el("article", { class: "card heat", "aria-label": page.title || page.url || "page" },
      el("header", {},
        el("h3", { dir: "auto" }, page.title || page.url || "A page without a title"),
        el("p", { class: "muted" }, page.url && outside(page.url, page.url), page.url && several ? " · " : "", several && `${count(page.kept)} of ${count(page.blocks)} blocks kept`)),
      this.map(blocks),
      el("div", { class: "rows" }, this.items(top.items, false)));
  }

  /** The whole page as a strip of cells; a click goes to the block. The rows below say the same to those who do not see it. */
  map(blocks) {
    const each = Math.max(1, Math.ceil(blocks.length / CELLS));
    const cells = [];
    for (let place = 0; place < blocks.length; place += each) {
      const part = blocks.slice(place, place + each);
      const best = part.reduce((one, other) => (other.kept - one.kept || other.score - one.score) > 0 ? other : one);
      const cell = el("i", { class: `${this.shade(best)}${part.some((block) => block.kept) ? " k" : ""}`, title: `${best.kept ? "kept" : "dropped"}, score ${best.score.toFixed(3)}: ${best.text.slice(0, 80)}` });
      cell.dataset.block = best.index;
      cells.push(cell);
    }
    const more = el("p", { class: "muted small", hidden: true }, "The map goes on below: scroll in it.");
    const tell = () => { more.hidden = map.scrollTop + map.clientHeight > map.scrollHeight - 4; };
    const map = el("div", { class: "map", onclick: (event) => this.go(event), onscroll: tell }, cells);
    new ResizeObserver(tell).observe(map); // whether it goes on depends on the width
    return el("div", { class: "mapped", "aria-hidden": "true" }, map, more);
  }

  go(event) {
    const index = Number(event.target.dataset.block);
    if (!event.target.dataset.block) return;
    const rows = event.currentTarget.closest(".heat");
    for (;;) { // folds may lie in folds
      const row = rows.querySelector(`[data-index="${index}"]`);
      if (row) {
        row.scrollIntoView({ block: "center" });
        row.classList.add("found");
        setTimeout(() => row.classList.remove("found"), 1500);
        return;
      }
      const fold = [...rows.querySelectorAll(".fold > button[aria-expanded=false]")].find(({ dataset }) => Number(dataset.first) <= index && index <= Number(dataset.last));
      const more = [...rows.querySelectorAll("button.more")].find(({ dataset }) => Number(dataset.first) <= index);
      if (!fold && !more) return;
      (fold || more).click();
    }
  }

  /** Draw blocks and sections; runs in which nothing is kept are folded. */
  items(items, whole) {
    const drawn = [];
    for (let place = 0; place < items.length;) {
      let end = place;
      while (end < items.length && !items[end].kept) end += 1;
      const run = items.slice(place, end);
      if (!whole && run.reduce((sum, item) => sum + item.blocks, 0) > SHORT) drawn.push(this.fold(run));
      else drawn.push(...run.map((item) => this.item(item)));
      if (end < items.length) drawn.push(this.item(items[end]));
      place = end + 1;
    }
    return drawn;
  }

  item(item) {
    if (item.block) return this.row(item.block);
    const [first] = item.items;
    const own = first.block && plain(first.block.text) === item.text ? first.block : null; // the heading is a block itself
    const rest = own ? item.items.slice(1) : item.items;
    const told = item.kept ? `${count(item.kept)} of ${count(item.blocks)} kept` : `${count(item.blocks)} dropped`;
    const heading = el("div", { class: own && own.kept ? "heading k" : "heading", role: "heading", "aria-level": Math.min(6, 3 + item.level), title: own ? this.why(own) : false },
      ...(own ? [this.fate(own), this.score(own)] : []), el("span", { class: "grow", dir: "auto" }, item.text), el("span", { class: "muted number" }, told));
    if (own) heading.dataset.index = own.index;
    return el("section", { class: item.kept ? "part" : "part none" }, heading,
      rest.length > 0 && el("div", { class: "inside" }, this.items(rest, !item.kept && rest.every((one) => one.block))));
  }

  fold(run) {
    const first = run[0].first, last = run.at(-1).last;
    const total = run.reduce((sum, item) => sum + item.blocks, 0);
    const best = run.reduce((one, other) => (other.best.score > one.best.score ? other : one)).best;
    const names = run.filter((item) => !item.block).map((item) => item.text);
    const inside = el("div", { class: "inside-fold", hidden: true });
    const fill = (from) => {
      const part = run.slice(from, from + PART);
      inside.append(...this.items(part, true));
      if (from + PART < run.length) {
        const more = el("button", { type: "button", class: "quiet more", onclick: () => { more.remove(); fill(from + PART); } }, `Show more of ${count(run.length)}`);
        more.dataset.first = run[from + PART].first;
        inside.append(more);
      }
    };
    const button = el("button", { type: "button", "aria-expanded": "false", onclick: () => {
      const open = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", String(open));
      inside.hidden = !open;
      if (open) {
        this.opened.add(first);
        if (!inside.firstChild) fill(0);
      } else {
        this.opened.delete(first);
        inside.replaceChildren();
      }
    } },
    el("span", { class: "what" }, `${count(total)} ${total === 1 ? "block" : "blocks"} dropped`),
    names.length > 0 && el("span", { class: "names", dir: "auto" }, names.length > 3 ? `${names.slice(0, 2).join(" · ")} … ${names.at(-1)}` : names.join(" · ")),
    el("span", { class: `score number ${this.shade(best)}` }, `best ${best.score.toFixed(2)}`));
    Object.assign(button.dataset, { first, last });
    const node = el("div", { class: "fold" }, button, inside);
    if (this.opened.has(first)) button.click();
    return node;
  }

  fate({ kept }) {
    return el("span", { class: kept ? "fate yes" : "fate" }, el("span", { "aria-hidden": "true" }, kept ? "✓" : "–"), el("span", { class: "unseen" }, kept ? "kept" : "dropped"));
  }

  score(block) {
    return el("span", { class: `score number ${this.shade(block)}`, title: `${block.path}; stage ${block.stage}` }, block.score.toFixed(2));
  }

  row(block) {
    const node = el("div", { class: block.kept ? "block k" : "block" }, this.fate(block), this.score(block),
      el("div", { class: "text" }, el("span", { dir: "auto" }, block.text.trim()), el("small", { class: "why" }, this.why(block))));
    node.dataset.index = block.index;
    return node;
  }

  /** Say in words why a block was kept or dropped. */
  why(block) {
    const rank = `rank ${count(this.ranks.get(block.index))} of ${count(this.got.blocks.length)}`;
    const words = `${count(block.words)} ${block.words === 1 ? "word" : "words"}`;
    if (block.kept && block.role === "header") return `kept: a kept block needs it as its header · ${words}`;
    const part = block.role === "cut" ? " · part of a block that was too large" : "";
    if (block.kept) return `${rank} · ${words}${part}`;
    const reason = block.score > this.least && block.stage === this.stage ? "did not fit what was left of the budget" : "below the kept blocks";
    return `dropped: ${reason} · ${rank} · ${words}${part}`;
  }
}

/** Return a text on one line, as headings are told. */
function plain(text) {
  return text.split(/\s+/).filter(Boolean).join(" ").slice(0, 300);
}

/** Nest blocks in sections by the page's headings; sections without blocks are left out. */
function sectionsOf(blocks, outline) {
  const top = { level: 0, items: [] };
  const stack = [top];
  let next = 0;
  for (const block of blocks) {
    for (; next < outline.length && outline[next].block <= block.index; next += 1) {
      const { level, text } = outline[next];
      while (stack.at(-1).level >= level) stack.pop();
      const section = { level, text, items: [] };
      stack.at(-1).items.push(section);
      stack.push(section);
    }
    stack.at(-1).items.push({ block, kept: Number(block.kept), blocks: 1, best: block, first: block.index, last: block.index });
  }
  return summed(top);
}

function summed(section) {
  section.items = section.items.map((item) => (item.block ? item : summed(item))).filter((item) => item.blocks);
  section.kept = section.items.reduce((sum, item) => sum + item.kept, 0);
  section.blocks = section.items.reduce((sum, item) => sum + item.blocks, 0);
  if (section.blocks) {
    section.first = section.items[0].first;
    section.last = section.items.at(-1).last;
    section.best = section.items.map((item) => item.best).reduce((one, other) => (other.score > one.score ? other : one));
  }
  return section;
}
