// Requests to the server, with the key when one is needed, and errors people can read.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let key = sessionStorage.getItem("marginmerge-key") || "";
let askForKey = null;

/** `ask` shows a dialog and resolves to a key; it is told whether one was refused already. */
export function onKeyNeeded(ask) { askForKey = ask; }

async function send(path, options = {}, again = false) {
  const headers = { ...(options.headers || {}) };
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not answer. Is it still running?");
  }
  if (response.status === 401 && askForKey) {
    key = await askForKey(again || Boolean(key));
    sessionStorage.setItem("marginmerge-key", key);
    return send(path, options, true);
  }
  if (!response.ok) {
    let code = "error", message = `The server answered with status ${response.status}.`;
    try {
      ({ code, message } = (await response.json()).error);
    } catch { /* not one of our errors */ }
    throw new ApiError(response.status, code, message);
  }
  return response;
}

export async function get(path) { return (await send(path)).json(); }

export async function post(path, body, signal) {
  const response = await send(path, {
    method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  return response.json();
}

export async function postFile(path, file) {
  const response = await send(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
  return response.json();
}

const images = new Map();

/** An <img> cannot send a key, so images come through fetch. Null when the page has none. */
export function pageImage(id) {
  if (!images.has(id)) {
    if (images.size > 200) images.delete(images.keys().next().value);
    images.set(id, (async () => {
      try {
        const blob = await (await send(`v1/pages/${encodeURIComponent(id)}/image`)).blob();
        const image = new Image();
        image.src = URL.createObjectURL(blob);
        await image.decode();
        return image;
      } catch { return null; }
    })());
  }
  return images.get(id);
}

export async function pageText(id) {
  try {
    return await (await send(`v1/pages/${encodeURIComponent(id)}/text`)).text();
  } catch { return null; }
}
