// Make nodes. Text is always text: nothing in this page parses a string as HTML.

/** Return a new element. `on…` properties are listeners; `class`, `for` and others are attributes; false leaves one out. */
export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Return the address where it is http or https, else "". Only such addresses become links. */
export function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : "";
  } catch {
    return "";
  }
}

/** Return the words of a citation, those that answer marked. Places count code points. */
export function quoted(citation) {
  const letters = Array.from(citation.quote);
  const parts = [];
  let end = 0;
  for (const mark of citation.marks || []) {
    const [from, to] = [mark.start - citation.span.start, mark.end - citation.span.start];
    parts.push(letters.slice(end, from).join(""), el("mark", {}, letters.slice(from, to).join("")));
    end = to;
  }
  return [...parts, letters.slice(end).join("")];
}

/** Return a link that opens in a new tab and tells the other site nothing; plain text where the address is no web address. */
export function outside(address, ...label) {
  const href = webAddress(address);
  if (!href) return el("span", {}, ...label);
  return el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...label);
}

/** Return the address of a citation; that of a PDF opens at its page. */
export function addressOf(citation) {
  const page = /^page (\d+)$/.exec(citation.place || "");
  return page && !citation.url.includes("#") ? `${citation.url}#page=${page[1]}` : citation.url;
}

/** Return a line that says what went wrong; screen readers read it at once. */
export function problem(message) {
  return el("p", { class: "problem", role: "alert" }, message);
}

/** Return a date of a page as people write it, as exact as the page says it: a year, a month or a day. */
export function dateOf(text) {
  const [, year, month, day] = /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?/.exec(text) || [];
  if (!month) return text;
  const parts = { year: "numeric", month: "long", ...(day ? { day: "numeric" } : {}), timeZone: "UTC" };
  return new Date(Date.UTC(year, month - 1, day || 1)).toLocaleDateString("en-GB", parts);
}

/** Return the day on which a cited page was fetched, in words; "" for one that was not. */
export function readOn(citation) {
  return citation.read_at ? `read on ${dateOf(citation.read_at)}` : "";
}

/** Return a number with separators of thousands. */
export function count(number) {
  return Number(number).toLocaleString("en");
}
