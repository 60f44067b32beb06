// A tree to walk: only what is open is in the page, so that 100,000 nodes are as quick as ten. Follows the ARIA pattern of a tree.
// The page of prunus index tree --html holds this file, too; it must import nothing.

const PART = 100; // children that are loaded at once
const FEW = 12; // summaries below the first root that are opened with it

/**
 * Return `{node, walkTo}`: the tree, and a function that opens the way to a node and chooses it.
 *
 * `load(parent, start, count)` gives `{nodes, total}`: some children of a node, or of null the roots. A node is `{id, layer,
 * children, text, sentences, ...}`. `chosen(node, path)` is called with a chosen node and the nodes above it, the root first;
 * of a sentence with `{sentence, id, ...}`. `marks(id)` gives the class names of a mark and its label as `[classes, label]`, or null.
 */
export function tree({ load, chosen, marks = () => null, label = "Summary tree" }) {
  const root = document.createElement("ul");
  root.setAttribute("role", "tree");
  root.setAttribute("aria-label", label);
  root.className = "tree";
  const items = new Map(); // item -> what it shows: {node, above}
  const groups = new WeakMap(); // list of children -> which of them it shows: {parent, above, from, to, total}
  let current = null;

  root.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    if (item.classList.contains("rest")) more(item);
    else {
      choose(item);
      if (event.target.closest(".twist")) toggle(item);
    }
  });
  root.addEventListener("dblclick", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (item && !event.target.closest(".twist")) toggle(item);
  });
  root.addEventListener("keydown", async (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const shown = [...root.querySelectorAll("[role=treeitem]")];
    const place = shown.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    const step = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (step !== undefined) focus(shown[step]);
    else if (event.key === "ArrowRight" && open === "false") await toggle(item);
    else if (event.key === "ArrowRight" && open === "true") focus(item.querySelector("[role=treeitem]"));
    else if (event.key === "ArrowLeft" && open === "true") await toggle(item);
    else if (event.key === "ArrowLeft") focus(item.parentNode.closest("[role=treeitem]"));
    else if (event.key === "Enter" || event.key === " ") await (item.classList.contains("rest") ? more(item) : toggle(item));
    else return;
    event.preventDefault();
  });

  /** Move the focus to an item, and show what it holds. */
  function focus(item) {
    if (!item) return;
    choose(item);
    item.focus();
  }

  function choose(item) {
    if (current) {
      current.tabIndex = -1;
      current.setAttribute("aria-selected", "false");
    }
    current = item;
    item.tabIndex = 0;
    const held = items.get(item);
    if (!held) return;
    item.setAttribute("aria-selected", "true");
    chosen(held.node, held.above);
  }

  async function toggle(item) {
    const open = item.getAttribute("aria-expanded");
    if (open === "true") {
      item.setAttribute("aria-expanded", "false");
      const group = item.querySelector("[role=group]");
      for (const gone of group.querySelectorAll("[role=treeitem]")) items.delete(gone);
      if (group.contains(current)) focus(item);
      group.remove();
    } else if (open === "false") await expand(item, 0);
  }

  /** Open an item and load a part of its children: the part with the child at a place. */
  async function expand(item, place) {
    const { node, above } = items.get(item);
    const group = document.createElement("ul");
    group.setAttribute("role", "group");
    item.setAttribute("aria-expanded", "true");
    item.append(group);
    if (node.children) await begin(group, node, [...above, node], place);
    else group.append(...node.sentences.map((words, number) => sentence(words, number, node, [...above, node])));
  }

  /** Fill an empty group with the part that holds the child at a place. */
  async function begin(group, parent, above, place) {
    const from = place - (place % PART);
    groups.set(group, { parent, above, from, to: from, total: 0 });
    await extend(group, "more");
  }

  /** Load more children of a group, at its end or before its first, and return their items. */
  async function extend(group, way) {
    const held = groups.get(group);
    const from = way === "more" ? held.to : Math.max(0, held.from - PART);
    group.setAttribute("aria-busy", "true");
    try {
      const { nodes, total } = await load(held.parent ? held.parent.id : null, from, way === "more" ? PART : held.from - from);
      const made = nodes.map((node, at) => nodeItem(node, held.above, from + at, total));
      for (const old of group.querySelectorAll(":scope > .rest")) old.remove();
      if (way === "more") group.append(...made);
      else group.prepend(...made);
      held.total = total;
      held.from = Math.min(held.from, from);
      held.to = Math.max(held.to, from + nodes.length);
      if (held.from > 0) group.prepend(rest(held, "earlier", held.from));
      if (held.to < total) group.append(rest(held, "more", total - held.to));
      return made;
    } catch (error) {
      const said = document.createElement("li");
      said.setAttribute("role", "none");
      said.className = "problem";
      said.textContent = error.message;
      group.append(said);
      return [];
    } finally {
      group.removeAttribute("aria-busy");
    }
  }

  /** Return the item that stands for children that are not loaded yet. */
  function rest({ above }, way, count) {
    const item = itemOf("rest", above.length + 1);
    item.dataset.way = way;
    item.append(line([text("label", way === "more" ? `Show more (${count.toLocaleString("en")} follow)` : `Show the ones before (${count.toLocaleString("en")})`)]));
    return item;
  }

  async function more(item) {
    const { way } = item.dataset;
    const made = await extend(item.parentNode, way);
    focus(way === "more" ? made[0] : made.at(-1));
  }

  function nodeItem(node, above, place, total) {
    const item = itemOf(node.layer ? "summary" : "leaf", above.length + 1);
    item.setAttribute("aria-posinset", place + 1);
    item.setAttribute("aria-setsize", total);
    if (node.children || node.sentences.length) item.setAttribute("aria-expanded", "false");
    const mark = marks(node.id);
    const parts = [text("label", firstWords(node.text) || "(no summary yet)")];
    if (node.document && node.document !== above.at(-1)?.document) parts.unshift(text("document", node.title || node.document.split("/").at(-1)));
    if (mark) {
      item.classList.add(...mark[0]);
      parts.push(text("taken", mark[1]));
    }
    if (node.children) parts.push(text("count", node.children.toLocaleString("en")));
    item.append(line(parts));
    item.dataset.id = node.id;
    items.set(item, { node, above });
    return item;
  }

  function sentence(words, number, node, above) {
    const item = itemOf("sentence", above.length + 1);
    item.append(line([text("label", words)]));
    items.set(item, { node: { ...node, sentence: number }, above });
    return item;
  }

  function itemOf(name, level) {
    const item = document.createElement("li");
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", level);
    item.setAttribute("aria-selected", "false");
    item.className = name;
    item.tabIndex = -1;
    return item;
  }

  function line(parts) {
    const made = document.createElement("div");
    made.className = "line";
    made.append(text("twist", ""), ...parts);
    return made;
  }

  function text(name, words) {
    const made = document.createElement("span");
    made.className = name;
    if (name === "twist") made.setAttribute("aria-hidden", "true");
    if (name === "label") made.dir = "auto";
    made.textContent = words;
    return made;
  }

  /** Open the tree along a path, `[{id, place}]` from a root on, and choose its end; an empty path opens the first root and chooses it. */
  async function walkTo(path) {
    let group = root;
    let above = [];
    let parent = null;
    for (const [depth, { id, place }] of (path.length ? path : [{ id: null, place: 0 }]).entries()) {
      const inside = () => [...group.children].find((item) => (id === null ? items.has(item) : item.dataset.id === String(id)));
      if (!inside()) {
        for (const gone of group.querySelectorAll("[role=treeitem]")) items.delete(gone);
        group.replaceChildren();
        await begin(group, parent, above, place);
      }
      const item = inside();
      if (!item) return;
      if (depth >= path.length - 1) {
        if (!path.length) await openTop(item);
        choose(item);
        const holder = root.parentNode; // it alone is scrolled, not the page
        const { top, bottom } = item.firstChild.getBoundingClientRect();
        const frame = holder.getBoundingClientRect();
        if (top < frame.top || bottom > frame.bottom) holder.scrollTop += top - frame.top - frame.height / 3;
        return item;
      }
      if (item.getAttribute("aria-expanded") === "false") await expand(item, path[depth + 1].place);
      ({ node: parent, above } = items.get(item));
      above = [...above, parent];
      group = item.querySelector("[role=group]");
    }
  }

  /** Open a root, and the summaries below it where they are few. */
  async function openTop(item) {
    if (item.getAttribute("aria-expanded") !== "false") return;
    await expand(item, 0);
    const summaries = [...item.querySelectorAll(":scope > ul > .summary[aria-expanded=false]")];
    if (summaries.length <= FEW) for (const one of summaries) await expand(one, 0);
  }

  return { node: root, walkTo };
}

/** Return the first words of a text, as its label. */
function firstWords(text) {
  const words = text.slice(0, 200).split(/\s+/).filter(Boolean).join(" ");
  return words.length > 120 ? `${words.slice(0, 119)}…` : words;
}
