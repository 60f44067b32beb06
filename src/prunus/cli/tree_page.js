"use strict";
const nodes = JSON.parse(document.getElementById("nodes").textContent);
const tree = document.getElementById("tree");
const about = document.getElementById("about"), text = document.getElementById("text");
const whole = tree.dataset.whole.split(" ").map(Number);
let box = tree.getAttribute("viewBox").split(" ").map(Number);
function show(next) { box = next; tree.setAttribute("viewBox", box.join(" ")); }
function zoom(factor, x, y) {
  const width = Math.min(Math.max(box[2] * factor, 120), whole[2] * 4), scale = width / box[2];
  show([x - (x - box[0]) * scale, y - (y - box[1]) * scale, width, box[3] * scale]);
}
function place(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(tree.getScreenCTM().inverse());
  return [point.x, point.y];
}
function choose(circle) {
  for (const other of tree.querySelectorAll(".chosen")) other.classList.remove("chosen");
  circle.classList.add("chosen");
  const id = circle.id.slice(1), [layer, from, tokens, words] = nodes[id];
  about.textContent = (layer ? "Summary " + id + ", layer " + layer : "Leaf " + id) + ", " + tokens + " tokens" + (from ? ", " + from : "");
  text.textContent = words || "(no summary yet)";
}
let start = null, moved = false;
tree.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, ...place(event)); }, { passive: false });
tree.addEventListener("pointerdown", (event) => { start = place(event); moved = false; });
tree.addEventListener("pointermove", (event) => {
  if (!start) return;
  const [x, y] = place(event);
  if (Math.hypot(x - start[0], y - start[1]) * tree.clientWidth / box[2] > 3) moved = true;
  if (moved) show([box[0] + start[0] - x, box[1] + start[1] - y, box[2], box[3]]);
});
window.addEventListener("pointerup", () => { start = null; });
tree.addEventListener("click", (event) => { if (!moved && event.target.tagName === "circle") choose(event.target); });
tree.addEventListener("keydown", (event) => {
  if ((event.key !== "Enter" && event.key !== " ") || event.target.tagName !== "circle") return;
  event.preventDefault();
  choose(event.target);
});
const middle = () => [box[0] + box[2] / 2, box[1] + box[3] / 2];
document.getElementById("in").addEventListener("click", () => zoom(1 / 1.5, ...middle()));
document.getElementById("out").addEventListener("click", () => zoom(1.5, ...middle()));
document.getElementById("whole").addEventListener("click", () => show(whole.slice()));
document.getElementById("search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  let found = 0;
  for (const [id, row] of Object.entries(nodes)) {
    const hit = wanted !== "" && (row[3] + " " + row[1]).toLowerCase().includes(wanted);
    const circle = document.getElementById("n" + id);
    if (circle) circle.classList.toggle("hit", hit);
    found += hit;
  }
  document.getElementById("hits").textContent = wanted ? found + " nodes" : "";
});
