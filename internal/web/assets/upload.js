"use strict";
// Hands files over one by one, a few at a time, with progress: files and folders that are chosen
// or dropped. Without this script the forms of the page do the same in one piece.
(() => {
  const AT_ONCE = 4;
  const zone = document.getElementById("drop");
  const picked = document.getElementById("picked");
  const start = document.getElementById("start");
  const panel = document.getElementById("sending");
  if (!zone || !picked || !start || !panel) return;
  const said = document.getElementById("said");
  const bar = panel.querySelector("progress");
  const text = document.getElementById("sent");
  const problem = document.getElementById("problem");
  const files = new Map(); // name → File

  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const size = (n) => {
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
    return (i ? n.toFixed(1) : n) + " " + units[i];
  };
  const count = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");
  const total = () => [...files.values()].reduce((n, f) => n + f.size, 0);

  // The files of a folder that was dropped. readEntries gives at most a hundred at a time.
  async function walk(entry, path, out) {
    if (entry.isFile) {
      out.push([path + entry.name, await new Promise((ok, no) => entry.file(ok, no))]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((ok, no) => reader.readEntries(ok, no));
      if (!some.length) return;
      for (const e of some) await walk(e, path + entry.name + "/", out);
    }
  }

  function add(list) {
    for (const [name, file] of list) files.set(name, file);
    show();
  }

  function show() {
    const names = [...files.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    picked.hidden = !names.length;
    start.disabled = !names.length;
    document.getElementById("picked-sum").textContent = count(names.length, "file") + ", " + size(total());
    const list = document.getElementById("picked-names");
    list.replaceChildren(...names.slice(0, 12).map((n) => {
      const li = document.createElement("li");
      li.textContent = n + " (" + size(files.get(n).size) + ")";
      return li;
    }));
    if (names.length > 12) {
      const li = document.createElement("li");
      li.textContent = "and " + (names.length - 12) + " more";
      list.append(li);
    }
    said.textContent = names.length ? count(names.length, "file") + " chosen" : "";
  }

  for (const input of zone.querySelectorAll('input[type="file"]')) {
    input.removeAttribute("name"); // the script sends them
    input.addEventListener("change", () => {
      add([...input.files].map((f) => [f.webkitRelativePath || f.name, f]));
      input.value = "";
    });
  }
  document.getElementById("forget").addEventListener("click", () => { files.clear(); show(); });

  // Dropping works anywhere on the page.
  let depth = 0;
  const withFiles = (e) => e.dataTransfer && [...e.dataTransfer.types].includes("Files");
  addEventListener("dragenter", (e) => { if (withFiles(e)) { e.preventDefault(); depth++; zone.classList.add("over"); } });
  addEventListener("dragleave", (e) => { if (withFiles(e) && --depth <= 0) { depth = 0; zone.classList.remove("over"); } });
  addEventListener("dragover", (e) => { if (withFiles(e)) e.preventDefault(); });
  addEventListener("drop", async (e) => {
    if (!withFiles(e)) return;
    e.preventDefault();
    depth = 0;
    zone.classList.remove("over");
    // Entries must be asked for before anything is waited for.
    const entries = [...e.dataTransfer.items].map((i) => i.webkitGetAsEntry && i.webkitGetAsEntry()).filter(Boolean);
    const plain = entries.length ? [] : [...e.dataTransfer.files];
    const out = plain.map((f) => [f.name, f]);
    try {
      for (const entry of entries) await walk(entry, "", out);
    } catch (err) {
      fail("Part of what was dropped cannot be read: " + err.message);
    }
    add(out);
    start.focus();
  });

  let ended = false;
  function fail(why) {
    problem.textContent = why;
    problem.hidden = false;
    said.textContent = why;
  }

  async function ask(method, path, body) {
    const answer = await fetch(path, {
      method, body: body === undefined ? undefined : JSON.stringify(body),
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
    });
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    let why = answer.status + " " + answer.statusText;
    try { why = (await answer.json()).detail || why; } catch { /* no JSON: the status says it */ }
    throw new Error(why);
  }

  // When a file was written last, for the address; nothing where the browser does not know, or
  // what it says cannot be: before 1970, or after tomorrow.
  const modified = (file) => {
    const t = file.lastModified;
    return t >= 0 && t <= Date.now() + 864e5 - 6e5 ? "?modified=" + encodeURIComponent(new Date(t).toISOString()) : "";
  };

  // put sends one file; XMLHttpRequest, because fetch tells nothing of how far it is.
  function put(id, name, file, moved, running) {
    return new Promise((ok, no) => {
      const x = new XMLHttpRequest();
      running.add(x);
      let before = 0;
      x.open("PUT", "/v1/cases/" + id + "/files/" + name.split("/").map(encodeURIComponent).join("/") + modified(file));
      x.setRequestHeader("Content-Type", "application/octet-stream");
      x.upload.onprogress = (e) => { moved(e.loaded - before); before = e.loaded; };
      x.onload = () => {
        running.delete(x);
        if (x.status < 300) {
          moved(file.size - before);
          ok();
          return;
        }
        let why = x.status + " " + x.statusText;
        try { why = JSON.parse(x.responseText).detail || why; } catch { /* the status says it */ }
        no(new Error(name + ": " + why));
      };
      x.onerror = () => no(new Error(name + ": the connection was cut, or the file cannot be read any more"));
      x.onabort = () => no(new Error("cancelled"));
      x.send(file);
    });
  }

  const nameOf = (names) => {
    const tops = new Set(names.map((n) => n.includes("/") ? n.split("/")[0] + "/" : n));
    const [first] = tops;
    return tops.size === 1 ? first : first + " and " + (tops.size - 1) + " more";
  };

  async function send() {
    const names = [...files.keys()];
    const all = total();
    const running = new Set();
    let bytes = 0, done = 0, id = null;
    ended = false;
    problem.hidden = true;
    panel.hidden = false;
    zone.classList.add("busy");
    start.disabled = true;
    bar.max = Math.max(all, 1);
    const draw = () => {
      bar.value = all ? bytes : done;
      text.textContent = done + " of " + count(names.length, "file") + ", " + size(bytes) + " of " + size(all);
    };
    draw();
    const cancel = document.getElementById("cancel");
    cancel.onclick = () => { ended = true; for (const x of running) x.abort(); };
    cancel.focus();
    const refused = [];
    try {
      id = (await ask("POST", "/v1/cases", { name: nameOf(names) })).id;
      let next = 0;
      const worker = async () => {
        while (next < names.length && !ended) {
          const name = names[next++];
          try {
            await put(id, name, files.get(name), (n) => { bytes += n; draw(); }, running);
          } catch (err) {
            if (ended) throw err;
            refused.push(err.message);
            if (refused.length > 20) { ended = true; throw new Error("more than 20 files were refused; the first: " + refused[0]); }
          }
          done++;
          draw();
        }
      };
      const ways = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
      const failed = ways.find((w) => w.status === "rejected");
      if (failed) throw failed.reason;
      if (ended) throw new Error("cancelled");
      if (refused.length === names.length) throw new Error(refused[0]);
      await ask("POST", "/v1/cases/" + id + "/diagnose");
      location.assign("/cases/" + id);
    } catch (err) {
      for (const x of running) x.abort();
      if (id) ask("DELETE", "/v1/cases/" + id).catch(() => {});
      panel.hidden = true;
      zone.classList.remove("busy");
      start.disabled = false;
      fail(err.message === "cancelled" ? "Cancelled. Nothing of it is kept." : "Not handed over. " + err.message);
      start.focus();
    }
  }
  zone.querySelector("form").addEventListener("submit", (e) => { e.preventDefault(); if (files.size) send(); });
  document.documentElement.classList.add("scripts");
  start.disabled = true;
  // Back from a case, the page is as it was left.
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
})();
