"""The page as it stands in the browser, written as HTML: a script that runs apart from the page's own.

It runs in an isolated world, in which no function is the page's, and changes nothing. Of shadow roots it
writes what is shown: the root's content with the host's children in its slots. A frame of the same origin that
is large enough to be read stands in its place as a section.
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
    } catch (error) { return null; }  // another origin's
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
"""Takes the most code units to write; returns html, and whether it was cut, its frames and its shadow roots."""

QUIET: Final = r"""
(function () {
  const body = document.body;
  const text = body ? body.innerText.length : 0;
  return [document.readyState, text, document.getElementsByTagName("*").length];
})
"""
"""What tells a page that still fills itself from one that is done: asked again and again until it stays the same."""
