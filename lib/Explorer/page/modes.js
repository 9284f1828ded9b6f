// Colours of MLIR, PTX and SASS. Sources in CUDA have the mode of C++.
const mlirNumber = { regex: /-?\b(?:0x[\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\b/, token: "number" };
const quotedText = { regex: /"(?:[^"\\]|\\.)*"/, token: "string" };
const lineComment = { regex: /\/\/.*/, token: "comment" };

CodeMirror.defineSimpleMode("mlir", {
  start: [lineComment, quotedText,
    { regex: /%[\w$.#-]+/, token: "variable" }, { regex: /@[\w$.-]+/, token: "def" }, { regex: /\^\w+/, token: "tag" },
    { regex: /[#!][a-zA-Z_][\w.]*/, token: "type" },
    { regex: /(?:tensor|memref|vector|tuple|complex)(?=<)|\b(?:index|none|[su]?i\d+|b?f\d+\w*|tf32)\b/, token: "type" },
    { regex: /\b(?:true|false|unit|dense|loc)\b/, token: "atom" },
    { regex: /[a-z_]\w*\.[a-z_][\w.]*/, token: "keyword" }, { regex: /\b(?:module|func|return|to|step|iter_args|else|ins|outs)\b/, token: "keyword" },
    { regex: /\d+x(?=[\dfib?])/, token: "number" }, mlirNumber, { regex: /[\w$]+/, token: null }],
});

CodeMirror.defineSimpleMode("ptx", {
  start: [lineComment, { regex: /\/\*/, token: "comment", next: "comment" }, quotedText,
    { regex: /%[\w$]+(?:\.\w+)?/, token: "variable" }, { regex: /[$][\w$]+:?/, token: "tag" },
    { regex: /@!?(?=%)/, token: "atom" },
    { regex: /\.(?:version|target|address_size|visible|entry|func|param|reg|shared|global|const|local|extern|align|loc|file|section|reqntid|maxntid|minnctapersm|maxnreg|pragma|explicitcluster|reqnctapercluster|maxclusterrank)\b/, token: "attribute" },
    { regex: /[a-z][a-z0-9_]*(?:::[a-z_]+)?(?:\.[\w:]+)+/, token: "keyword" },
    { regex: /\b(?:ret|exit|trap|bra|call|membar|fence|isspacep|mov|add|sub|mul|mad)\b/, token: "keyword" },
    { regex: /\b(?:0[xX][\da-fA-F]+|0[fFdD][\da-fA-F]+|\d+)\b/, token: "number" }, { regex: /\.[a-z]\w*/, token: "type" }, { regex: /[\w$]+/, token: null }],
  comment: [{ regex: /.*?\*\//, token: "comment", next: "start" }, { regex: /.*/, token: "comment" }],
});

CodeMirror.defineSimpleMode("sass", {
  start: [lineComment, { regex: /\/\*[\da-f]{4,}\*\//, token: "meta" }, { regex: /\/\*.*?\*\//, token: "comment" }, quotedText,
    { regex: /@!?U?P[T\d]+/, token: "atom" }, { regex: /\b(?:UR?|R|P|UP|SR|SB)(?:\d+|Z|T)\b(?:\.reuse)?|\bSR_[\w.]+/, token: "variable" },
    { regex: /\.L_[\w]+|`\([^)]*\)/, token: "def" }, { regex: /\b[A-Z][A-Z0-9_]+(?:\.[\w.]+)*/, token: "keyword" },
    { regex: /-?\b(?:0x[\da-f]+|\d+(?:\.\d+)?)\b/, token: "number" }, { regex: /\.[a-z][\w.]*/, token: "attribute" }, { regex: /\w+/, token: null }],
});

function modeOf(text) {
  if (text.name === "ptx" || text.name === "sass") return text.name;
  return /\.(cu|cuh|h|hpp|cpp|cc|inl)$/.test(text.name) ? "text/x-c++src" : /\.py$/.test(text.name) ? null : "mlir";
}
