// Parts of texts that belong to a kernel, and lines that came from the same line.

/** The line, from 0, of the brace that closes the first one opened at `first` or later. */
function closingLine(lines, first) {
  let depth = 0;
  for (let i = first; i < lines.length; ++i) {
    for (const c of lines[i].replace(/"[^"]*"|\/\/.*$/g, "")) {
      if (c === "{") ++depth;
      if (c === "}" && --depth === 0) return i;
    }
  }
  return lines.length - 1;
}

/** The name of the kernel that a line of this text begins, or null. */
function beginning(text, line) {
  if (text.name === "ptx") return (line.match(/\.entry\s+([\w$]+)/) || [])[1];
  if (text.name === "sass") return (line.match(/^\s*\/\/-+ \.text\.(\S+)/) || [])[1];
  return (line.match(/^\s*gpu\.module @([\w$]+)/) || [])[1];
}

/** Parts of a text that belong to one kernel each: { name, first, last }, lines from 0. */
function regionsOf(text) {
  if (text.regions) return text.regions;
  text.regions = [];
  for (let i = 0; i < text.lines.length; ++i) {
    const name = beginning(text, text.lines[i]);
    if (!name) continue;
    let last = closingLine(text.lines, i);
    if (text.name === "sass") {
      const next = text.lines.findIndex((line, at) => at > i && /^\s*\/\/-{5,}/.test(line));
      last = next < 0 ? text.lines.length - 1 : next - 1;
    }
    text.regions.push({ name, first: i, last });
  }
  return text.regions;
}

/** The part of a text that is a kernel's, or null. */
function regionOf(text, kernel) {
  const name = text.name === "ptx" || text.name === "sass" ? kernel.name : kernel.module;
  return regionsOf(text).find(region => region.name === name) || null;
}

/** For each line of a text a map: index of a text -> lines of it that the line came from, or itself. */
function ancestorsOf(text) {
  if (text.ancestors) return text.ancestors;
  text.ancestors = [];
  text.lines.forEach((_, i) => {
    const found = new Map([[text.index, new Set([i + 1])]]);
    const base = findText((text.bases || [])[text.base ? text.base[i] : 0], text.module);
    for (const origin of (base && (text.origins || [])[i]) || [])
      for (const [index, lines] of ancestorsOf(base)[origin - 1] || [])
        found.set(index, new Set([...(found.get(index) || []), ...lines]));
    text.ancestors.push(found);
  });
  return text.ancestors;
}

/** True for two lines that meet in the last text from which both came. */
function areLinked(one, other) {
  let last = -1;
  for (const index of one.keys()) if (index > last && other.has(index)) last = index;
  if (last < 0) return false;
  const lines = other.get(last);
  for (const line of one.get(last)) if (lines.has(line)) return true;
  return false;
}

/** The source of a line: { text, line } of the first text that it came from, or null. */
function sourceOf(text, line) {
  const ancestors = ancestorsOf(text)[line - 1];
  if (!ancestors) return null;
  const first = Math.min(...ancestors.keys());
  return first === text.index ? null : { text: texts[first], line: [...ancestors.get(first)][0] };
}
