// Show Markdown that a model wrote. Nodes are created, never parsed from HTML: what looks like a tag is shown as text.
// A picture is shown by its words and is not loaded; a link goes to http or https alone, and only when it is clicked.

import { el, outside, webAddress } from "./dom.js";

const DEPTH = 8; // lists and quotes inside each other
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/**
 * Return the nodes of a text.
 *
 * `mark(number)` returns the node of a citation mark `[number]`; without it marks stay text.
 */
export function markdown(text, mark = null) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), mark, 0);
}

function blocks(lines, mark, depth) {
  const out = document.createDocumentFragment();
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) out.append(el("p", {}, ...spans(paragraph.join("\n"), mark)));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) flush();
    else if (fence) {
      flush();
      const code = [];
      while (++at < lines.length && !lines[at].trimStart().startsWith(fence[1])) code.push(lines[at]);
      out.append(el("pre", { tabindex: "0" }, el("code", {}, code.join("\n"))));
    } else if (heading) {
      flush();
      out.append(el(`h${Math.min(6, heading[1].length + 2)}`, {}, ...spans(heading[2].replace(/[ \t]+#+[ \t]*$/, ""), mark)));
    } else if (RULE.test(line)) {
      flush();
      out.append(el("hr"));
    } else if (/^ {0,3}>/.test(line) && depth < DEPTH) {
      flush();
      const quoted = [];
      while (at < lines.length && /^ {0,3}>/.test(lines[at])) quoted.push(lines[at++].replace(/^ {0,3}> ?/, ""));
      at--;
      out.append(el("blockquote", {}, blocks(quoted, mark, depth + 1)));
    } else if (ITEM.test(line) && depth < DEPTH && !(paragraph.length && /^ *\d/.test(line) && !/^ *1[.)]/.test(line))) {
      flush();
      at = list(out, lines, at, mark, depth) - 1;
    } else if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE_RULE.test(lines[at + 1])
      && cells(line).length === cells(lines[at + 1]).length) {
      flush();
      at = table(out, lines, at, mark) - 1;
    } else paragraph.push(line.trim());
  }
  flush();
  return out;
}

/** Append the list that begins at a line; return the line after it. */
function list(out, lines, at, mark, depth) {
  const [, indent, sign] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(sign);
  const start = ordered ? Number.parseInt(sign, 10) : 1;
  const node = el(ordered ? "ol" : "ul", { start: ordered && start !== 1 && String(start) });
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || /\d/.test(item[2]) !== ordered || item[1].length > indent.length + 3 || item[1].length < indent.length) break;
    const inside = [lines[at].slice(item[0].length)];
    const deeper = indent.length + 2; // what is indented this far belongs to the item
    while (++at < lines.length) {
      const line = lines[at];
      const spaces = line.length - line.trimStart().length;
      if (!line.trim()) {
        const next = lines[at + 1] ?? "";
        if (!next.trim() || next.length - next.trimStart().length < deeper) break;
        inside.push("");
      } else if (spaces >= deeper) inside.push(line.slice(Math.min(spaces, item[0].length)));
      else if (ITEM.test(line) || FENCE.test(line) || HEADING.test(line) || /^ {0,3}>/.test(line)) break;
      else inside.push(line); // goes on in the next line without indentation
    }
    const content = blocks(inside, mark, depth + 1);
    const only = content.childNodes.length && content.firstChild.nodeName === "P" ? content.firstChild : null;
    if (only) only.replaceWith(...only.childNodes); // an item's first paragraph needs no space around it
    node.append(el("li", {}, content));
    let next = at;
    while (next < lines.length && !lines[next].trim()) next++;
    const after = next < lines.length && next <= at + 1 ? ITEM.exec(lines[next]) : null;
    if (after && after[1].length >= indent.length) at = next;
  }
  out.append(node);
  return at;
}

function table(out, lines, at, mark) {
  const head = cells(lines[at]);
  const rows = [];
  for (at += 2; at < lines.length && lines[at].includes("|") && lines[at].trim(); at++) rows.push(cells(lines[at]));
  const row = (tag, all) => el("tr", {}, head.map((_, place) => el(tag, {}, ...spans(all[place] ?? "", mark))));
  out.append(el("div", { class: "wide", tabindex: "0" }, el("table", {},
    el("thead", {}, row("th", head)), el("tbody", {}, rows.map((one) => row("td", one))))));
  return at;
}

function cells(line) {
  const bare = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return bare.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

// --- inside a line -----------------------------------------------------------------------------------

const OPEN = 20; // emphasis inside each other; more stays text
const TOKENS = [
  ["escape", /\\([!-/:-@[-`{-~])/y],
  ["entity", /&(amp|lt|gt|quot|apos|nbsp|#\d{1,7}|#x[\da-f]{1,6});/iy],
  ["code", /(`+)(?!`)([^\n]{1,2000}?)(?<!`)\1(?!`)/y],
  ["picture", /!\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)/y],
  ["link", /\[([^\[\]\n]{1,500})\]\(\s{0,9}<?((?:[^\s()<>]|\([^\s()<>]{0,200}\)){1,2000})>?(?:\s{1,9}["'(][^\n]{0,200}?["')])?\s{0,9}\)/y],
  ["mark", /\[(\d{1,4})\]/y],
  ["address", /<?(https?:\/\/[^\s<>"'`\\]{1,2000}[^\s<>"'`\\.,;:!?)\]}*_|])>?/iy],
  ["delimiter", /\*\*\*|\*\*|\*|~~|(?<![\p{L}\p{N}])___?(?=\S)|(?<![\p{L}\p{N}])_(?=\S)|(?<=\S)___?(?![\p{L}\p{N}])|(?<=\S)_(?![\p{L}\p{N}])/uy],
  ["break", /(?: {2,}|\\)?\n/y],
];
const PLAIN = /[^\\`&!\[<h*~_\n ]+|[\s\S]/giy;
const TAGS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" };

function spans(text, mark) {
  const frames = [{ sign: "", nodes: [] }];
  const put = (node) => {
    const nodes = frames.at(-1).nodes;
    if (typeof node === "string" && typeof nodes.at(-1) === "string") nodes.push(nodes.pop() + node);
    else nodes.push(node);
  };
  const spill = () => { // a delimiter without its end is text
    const { sign, nodes } = frames.pop();
    put(sign);
    nodes.forEach(put);
  };
  const delimiter = (sign, before, after) => {
    const open = frames.findLastIndex((frame) => frame.sign === sign);
    if (open > 0 && before && !/\s/.test(before)) {
      while (frames.length - 1 > open) spill();
      const { nodes } = frames.pop();
      put(el(TAGS[sign], {}, ...nodes));
    } else if (frames.length <= OPEN && after && !/\s/.test(after)) frames.push({ sign, nodes: [] });
    else put(sign);
  };
  let at = 0;
  scan: while (at < text.length) {
    for (const [kind, pattern] of TOKENS) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (!found) continue;
      const [whole, first, second] = found;
      if (kind === "mark" && !mark) continue;
      const before = text[at - 1];
      at += whole.length;
      if (kind === "escape") put(first);
      else if (kind === "entity") put(letterOf(first.toLowerCase()));
      else if (kind === "code") put(el("code", {}, second.trim() ? second.replace(/^ (.*) $/, "$1") : second));
      else if (kind === "picture") put(el("span", { class: "picture" }, first ? `[picture: ${first}]` : "[picture]"));
      else if (kind === "link") put(webAddress(second) ? outside(second, ...spans(first, null)) : `${first} (${second})`);
      else if (kind === "mark") put(mark(Number(first)));
      else if (kind === "address") put(outside(first, first));
      else if (kind === "break") put(el("br"));
      else if (whole.length === 3) {
        if (frames.at(-1).sign === whole[0]) { delimiter(whole[0], before, text[at]); delimiter(whole.slice(1), before, text[at]); }
        else { delimiter(whole.slice(1), before, text[at]); delimiter(whole[0], before, text[at]); }
      } else delimiter(whole, before, text[at]);
      continue scan;
    }
    PLAIN.lastIndex = at;
    const [plain] = PLAIN.exec(text);
    put(plain);
    at += plain.length;
  }
  while (frames.length > 1) spill();
  return frames[0].nodes;
}

const LETTERS = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

function letterOf(name) {
  if (!name.startsWith("#")) return LETTERS[name];
  const code = name[1] === "x" ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
  return code > 31 && code < 0x110000 ? String.fromCodePoint(code) : "\ufffd";
}
