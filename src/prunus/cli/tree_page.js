
// The page of prunus index tree --html: its data is in the page, and the tree above shows what is open of it.
const data = JSON.parse(document.getElementById("nodes").textContent);
const about = document.getElementById("about"), words = document.getElementById("text"), hits = document.getElementById("hits");
const parents = new Map();
for (const [id, [, , , , children]] of Object.entries(data.nodes)) for (const child of children) if (!parents.has(child)) parents.set(child, Number(id));
const ways = new Map(), below = new Map();
for (const [way, ids] of Object.entries(data.found)) for (const id of ids) ways.set(id, [...(ways.get(id) || []), way]);
for (const id of ways.keys()) for (const step of pathOf(id).slice(0, -1)) below.set(step.id, (below.get(step.id) || 0) + 1);

function nodeOf(id) {
  const [layer, from, tokens, sentences, children] = data.nodes[id];
  return { id, layer, from, tokens, text: sentences.join(""), sentences: layer ? [] : sentences, children: children.length };
}

/** Return the way from a root to a node, each with its place among its siblings. */
function pathOf(id) {
  const way = [id];
  while (parents.has(way[0])) way.unshift(parents.get(way[0]));
  return way.map((one, depth) => ({ id: one, place: (depth ? data.nodes[way[depth - 1]][4] : data.roots).indexOf(one) }));
}

const walk = tree({
  load: (parent, start, count) => {
    const ids = parent === null ? data.roots : data.nodes[parent][4];
    return { nodes: ids.slice(start, start + count).map(nodeOf), total: ids.length };
  },
  marks: (id) => (ways.has(id) ? [["hit", ...ways.get(id).map((way) => `by-${way}`)], `found by ${ways.get(id).join(" and ")}`] : below.has(id) ? [["near"], `${below.get(id)} found below`] : null),
  chosen: (node) => {
    about.textContent = `${node.layer ? `Summary ${node.id}, level ${node.layer}` : `Passage ${node.id}`}, ${node.tokens} tokens${node.from ? `, ${node.from}` : ""}`;
    words.replaceChildren(...(node.sentence === undefined ? [node.text || "(no summary yet)"] : node.sentences.map((one, place) => {
      if (place !== node.sentence) return one;
      const mark = document.createElement("mark");
      mark.textContent = one;
      return mark;
    })));
  },
});
document.getElementById("walk").append(walk.node);
const best = Object.values(data.found).flat()[0];
walk.walkTo(best === undefined ? [] : pathOf(best));

document.getElementById("search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  const found = wanted === "" ? [] : Object.keys(data.nodes).map(Number).filter((id) => {
    const [, from, , sentences] = data.nodes[id];
    return `${sentences.join("")} ${from}`.toLowerCase().includes(wanted);
  });
  hits.replaceChildren(...found.slice(0, 100).map((id) => {
    const row = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.dir = "auto";
    button.textContent = firstWords(nodeOf(id).text) || "(no summary yet)";
    button.addEventListener("click", async () => (await walk.walkTo(pathOf(id)))?.focus());
    row.append(button);
    return row;
  }));
  document.getElementById("found").textContent = wanted ? `${found.length.toLocaleString("en")} ${found.length === 1 ? "node" : "nodes"}` : "";
});
