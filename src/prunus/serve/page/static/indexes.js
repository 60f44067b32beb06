// The view Indexes: the summary tree of an index, from a summary down to its sentences, and the parts that are found for a question.

import { count, el, outside } from "./dom.js";
import { get, post } from "./http.js";
import { failure, onKey } from "./key.js";
import { tree } from "./tree.js";

const BUDGET = 2000; // tokens of the parts that are found, as a start

let view = null;
let wanted = null;

/** Show an index and the parts of it that are found for a question. */
export function open({ index, question }) {
  wanted = { index, question };
  location.hash = "#indexes";
  if (view && wanted) view.begin(); // the change of the address may have shown it already
}

/** Fill the section of this view; called once, when it is first shown. */
export async function mount(section) {
  const said = el("div", { role: "status" });
  const chosen = el("select", { name: "index" });
  const question = el("input", { name: "wanted", type: "search", maxlength: 20000, autocomplete: "off", placeholder: "Without a question the tree opens at its top." });
  const budget = el("input", { name: "tokens", type: "number", min: 1, value: BUDGET, inputmode: "numeric" });
  const result = el("div", {});
  const form = el("form", { class: "card", onsubmit: (event) => { event.preventDefault(); show(); } },
    el("h2", {}, "Indexes"),
    el("p", { class: "muted" }, "Walk the summaries of an index down to the sentences they are made from. With a question, the tree opens at the part that fits it best."),
    el("div", { class: "asked" },
      el("label", { class: "field" }, "Index", chosen),
      el("label", { class: "field grow" }, "Question", question),
      el("label", { class: "field" }, "Tokens", budget),
      el("button", {}, "Show")));
  section.append(form, said, result);

  let loading = null;

  async function list() {
    try {
      const load = loading = {}; // where a new key comes meanwhile, the later load counts
      const { indexes: names } = await get("v1/choices");
      if (loading !== load) return;
      chosen.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
      form.hidden = !names.length;
      said.replaceChildren(...(names.length ? [] : [el("p", { class: "card muted" }, "There is no index that you may ask. The operator of this server names some with prunus serve --index, or allows clients to make their own.")]));
      result.replaceChildren();
      if (names.length && !wanted) await show();
    } catch (error) {
      said.replaceChildren(failure(error));
    }
  }

  async function show() {
    said.replaceChildren(el("p", { class: "muted" }, "Opening …"));
    try {
      const name = encodeURIComponent(chosen.value);
      const words = question.value.trim();
      const found = words ? await post(`v1/indexes/${name}/retrieved`, { question: words, budget: Number(budget.value) || BUDGET }) : null;
      const first = await get(`v1/indexes/${name}/nodes`);
      said.replaceChildren();
      await draw(result, name, first, found);
    } catch (error) {
      said.replaceChildren(failure(error));
    }
  }

  view = {
    async begin() {
      const { index, question: words } = wanted;
      wanted = null;
      chosen.value = index;
      question.value = words;
      await show();
    },
  };
  onKey(list);
  await list();
  if (wanted) await view.begin();
}

/** Draw the tree beside the text of the chosen node. */
async function draw(result, name, first, found) {
  const ranks = new Map((found ? found.nodes : []).map((node, place) => [node.id, place + 1]));
  const below = new Map(); // summary -> how many of the found nodes are below it
  for (const node of found ? found.nodes : []) for (const { id } of node.path.slice(0, -1)) below.set(id, (below.get(id) || 0) + 1);
  const detail = el("article", { class: "card detail", "aria-live": "polite", "aria-label": "Chosen node" });
  const walk = tree({
    load: (parent, start, most) => (parent === null && start === 0 ? first : get(`v1/indexes/${name}/nodes?start=${start}&count=${most}${parent === null ? "" : `&parent=${parent}`}`)),
    marks: (id) => (ranks.has(id) ? [["hit"], `found, no. ${ranks.get(id)}`] : below.has(id) ? [["near"], `${below.get(id)} found below`] : null),
    chosen: (node, above) => detail.replaceChildren(...told(node, above, ranks.get(node.id))),
  });
  const parts = first.layers.map((nodes, layer) => (layer ? `${count(nodes)} ${nodes === 1 ? "summary" : "summaries"} on level ${layer}` : `${count(nodes)} ${nodes === 1 ? "passage" : "passages"}`));
  result.replaceChildren(
    el("p", { class: "muted number" }, [`${count(first.documents)} ${first.documents === 1 ? "document" : "documents"}`, ...parts].join(" · ")),
    found ? taken(found, walk) : "",
    el("div", { class: "walk" }, el("div", { class: "card holder" }, walk.node), detail));
  if (!first.total) result.replaceChildren(el("p", { class: "card muted" }, "This index is empty."));
  else await walk.walkTo(found && found.nodes.length ? found.nodes[0].path : []);
}

/** List what is found for a question, the best first; each opens the tree there. */
function taken(found, walk) {
  const rows = found.nodes.map((node, place) => el("li", {}, el("button", { type: "button", class: "quiet", onclick: async () => (await walk.walkTo(node.path))?.focus() },
    el("span", { class: "number rank" }, `${place + 1}`),
    el("span", { class: "what", dir: "auto" }, node.text.slice(0, 160)),
    el("span", { class: "muted number" }, node.layer ? `summary, level ${node.layer}` : node.title || node.document))));
  return el("section", { class: "card taken-list" },
    el("h3", {}, `${count(found.nodes.length)} ${found.nodes.length === 1 ? "part" : "parts"} found for the question, ${count(found.tokens)} tokens`),
    el("ol", {}, rows));
}

/** Describe a node: where it stands, what it says, and where it is from. */
function told(node, above, rank) {
  const here = node.sentence === undefined ? name(node) : `Sentence ${node.sentence + 1}`;
  const trail = above.length > 0 && el("ol", { class: "trail", "aria-label": "Path from the top" }, above.map((one) => el("li", { dir: "auto", title: one.text.slice(0, 300) }, `${name(one)}: ${one.text.slice(0, 40)}…`)));
  const body = node.sentence === undefined ? [el("p", { class: "words", dir: "auto" }, node.text || "This summary is not written yet.")]
    : [el("p", { class: "words", dir: "auto" }, node.sentences.flatMap((words, place) => [place === node.sentence ? el("mark", {}, words) : words, " "]))];
  const facts = [`${count(node.tokens)} tokens`, node.children && `${count(node.children)} ${node.children === 1 ? "part" : "parts"} below`, rank && `found, no. ${rank}`].filter(Boolean);
  return [trail, el("h3", {}, here), el("p", { class: "muted number" }, facts.join(" · ")),
    node.above.length > 0 && el("p", { class: "muted", dir: "auto" }, node.above.join(" › ")), ...body,
    (node.title || node.document) && el("p", { class: "muted source" }, "From ", node.title && node.title !== node.url && el("span", { dir: "auto" }, node.title, " · "), outside(node.url, node.url || node.document))].filter(Boolean);
}

function name(node) {
  return node.layer ? `Summary, level ${node.layer}` : "Passage";
}
