"use strict";
// The data of the page, and what everything uses: elements, names, the place that the address names.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);

function make(name, properties = {}, parent = null) {
  const node = Object.assign(document.createElement(name), properties);
  if (parent) parent.append(node);
  return node;
}

function svgNode(name, attributes, parent) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

/** What the address says behind '#': view, kernel, launch, panes, line (TEXT:LINE), theme. */
const place = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** Changes a part of the address; the page does not move. */
function remember(key, value) {
  if (value === undefined || value === "") delete place[key];
  else place[key] = String(value);
  history.replaceState(null, "", "#" + new URLSearchParams(place));
}

const listeners = {};
/** Parts of the page tell each other of changes: "kernel", "view", "theme". */
function on(name, listener) { (listeners[name] = listeners[name] || []).push(listener); }
function tell(name) { for (const listener of listeners[name] || []) listener(); }

const texts = data.texts.map((text, index) => ({ ...text, index, lines: text.text.replace(/\n$/, "").split("\n") }));
const shortName = name => name.split("/").pop();

/** Kernels that ran, in the order of their first launch, then others of the modules. */
const kernels = [];
function addKernel(module, name, label, launched) {
  if (kernels.some(kernel => kernel.module === module && kernel.name === name)) return;
  kernels.push({ module, name, launched, label: name === "kernel" ? module : label, key: module + "/" + name });
}
for (const launch of data.launches) addKernel(launch.program, launch.kernel, launch.label, true);
for (const text of texts.filter(each => each.name === "ptx"))
  for (const line of text.lines) {
    const entry = line.match(/\.entry\s+([\w$]+)/);
    if (entry) addKernel(text.module, entry[1], entry[1], false);
  }

/** The text called `name` that belongs to a module, or to the whole program. */
function findText(name, module) {
  return texts.find(text => text.name === name && (text.module === "" || text.module === module));
}
const textNames = [...new Set(texts.map(text => text.name))];
const chosen = { kernel: kernels[0] || null, line: null };
