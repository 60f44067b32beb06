// Talk to the server that this page is from. Paths are relative, as "v1/ask", so that a proxy may put it under a folder.

import { askKey, key } from "./key.js";

/** What went wrong: `message` in one line, `param` the field that it is about or "", `status` of HTTP or 0, `code` of the server. */
export class Failed extends Error {
  constructor(message, param = "", status = 0, code = "") {
    super(message);
    Object.assign(this, { param, status, code });
  }
}

export async function get(path) {
  return (await call("GET", path)).json();
}

export async function post(path, body, signal) {
  return (await call("POST", path, body, signal)).json();
}

/** Yield the server-sent events of a path as `{event, ...data}`; throw Failed where the request fails. Breaking off closes the stream. */
export async function* events(path, body, signal) {
  const response = await call("POST", path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const event = eventOf(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // the server hears that nobody listens
  }
}

function eventOf(part) {
  let name = "message";
  const data = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length ? { event: name, ...JSON.parse(data.join("\n")) } : null;
}

/** Call the server; where it wants a key, ask for one and call again. DELETE and others go through here, too. */
export async function call(method, path, body, signal) {
  for (;;) {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const used = key();
    if (used) headers.Authorization = `Bearer ${used}`;
    let response;
    try {
      response = await fetch(path, {
        method, headers, signal, credentials: "omit", cache: "no-store",
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failed("the server cannot be reached");
    }
    if (response.ok) return response;
    const again = response.status === 401 && (key() !== used || await askKey(used ? "This key does not work." : ""));
    if (again) continue;
    throw await failed(response);
  }
}

async function failed(response) {
  try {
    const { error } = await response.json();
    return new Failed(error.message, error.param || "", response.status, error.code || "");
  } catch {
    return new Failed(`the server said ${response.status}`, "", response.status);
  }
}
