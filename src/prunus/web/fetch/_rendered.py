"""The scripts that run in the browser: one serialises the rendered page as HTML, one observes its loading.

They run in an isolated world, where the page cannot have replaced any function, and change nothing. A shadow
root is written as displayed: its content, with the host's children in the slots. A readable frame of the same
origin (at least 10,000 square pixels) becomes a section in place of the frame.
"""

from __future__ import annotations

from typing import Final

SCRIPT: Final = r"""
(function (most) {
  const VOID = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));
  const SKIPPED = new Set("script style template noscript object embed applet canvas".split(" "));
  const BLANK = new Set(["SCRIPT", "STYLE"]);
  const URLS = new Set(["href", "src", "cite", "poster", "data"]);
  const parts = ["<!DOCTYPE html>"];
  let size = 15, frames = 0, shadows = 0, cut = false;
  const put = (text) => { parts.push(text); size += text.length; };
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const quoted = (text) => escape(text).replace(/"/g, "&quot;");
  const inner = (frame) => {
    try {
      const box = frame.getBoundingClientRect();
      const body = frame.contentDocument && frame.contentDocument.body;
      return body && box.width * box.height >= 10000 && frame.checkVisibility() ? body : null;
    } catch (error) { return null; }  // the frame has another origin
  };
  const open = (node, name, moved) => {
    let text = "<" + name;
    for (const attribute of node.attributes) {
      const key = attribute.name.toLowerCase();
      if (!/^[a-z][-a-z0-9_:.]*$/.test(key) || key.startsWith("on") || attribute.value.length > 100000) continue;
      let value = attribute.value;
      if (moved && URLS.has(key)) { try { value = new URL(value, node.baseURI).href; } catch (error) { continue; } }
      text += " " + key + '="' + quoted(value) + '"';
    }
    put(text + ">");
  };
  const children = (node) => {
    if (node.shadowRoot) { shadows += 1; return node.shadowRoot.childNodes; }
    if (node.localName === "slot" && node.getRootNode() instanceof ShadowRoot) {
      const assigned = node.assignedNodes();
      if (assigned.length) return assigned;
    }
    return node.childNodes;
  };
  const stack = [[document.documentElement, false]];
  while (stack.length) {
    const [node, moved] = stack.pop();
    if (typeof node === "string") { put(node); continue; }
    if (size > most) { cut = true; break; }
    if (node.nodeType === 3) { put(escape(node.data)); continue; }
    if (node.nodeType !== 1) continue;
    const name = node.localName.toLowerCase();
    if (!/^[a-z][-a-z0-9_:.]*$/.test(name)) continue;
    if (name === "script" && node.type === "application/ld+json") {
      put('<script type="application/ld+json">' + node.text.replace(/<\//g, "<\\/") + "</script>");
      continue;
    }
    if (SKIPPED.has(name)) continue;
    if (name === "iframe" || name === "frame") {
      const body = inner(node);
      if (!body) continue;
      frames += 1;
      put("<section>");
      stack.push(["</section>", true]);
      for (let i = body.childNodes.length - 1; i >= 0; i--) stack.push([body.childNodes[i], true]);
      continue;
    }
    open(node, name, moved);
    if (VOID.has(name)) continue;
    stack.push(["</" + name + ">", moved]);
    const list = children(node);
    for (let i = list.length - 1; i >= 0; i--) stack.push([list[i], moved]);
  }
  return { html: parts.join(""), cut: cut || size > most, frames, shadows };
})
"""
"""Argument: most code units to write. Returns html, cut (whether over that limit), and counts of frames and shadows."""

QUIET: Final = r"""
(function () {
  const body = document.body;
  const text = body ? body.innerText.length : 0;
  return [document.readyState, text, document.getElementsByTagName("*").length];
})
"""
"""Returns ready state, text length and element count; a page is complete once they stop changing."""
