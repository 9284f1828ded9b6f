#!/usr/bin/env bash
# Writes CodeMirror's files of this folder anew: update.sh [VERSION]. Needs npm.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
version="${1:-5.65.21}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --silent "codemirror@$version" terser@5
cd node_modules/codemirror
parts=(lib/codemirror.js addon/mode/simple.js mode/clike/clike.js addon/fold/foldcode.js addon/fold/foldgutter.js
       addon/fold/brace-fold.js addon/search/searchcursor.js addon/scroll/annotatescrollbar.js
       addon/search/matchesonscrollbar.js)
styles=(lib/codemirror.css addon/fold/foldgutter.css addon/search/matchesonscrollbar.css)
cat "${parts[@]}" >all.js
{
  echo "/*! CodeMirror $version, MIT licence, Copyright (C) 2017 by Marijn Haverbeke and others, codemirror.net/5: LICENSE.codemirror */"
  "$work/node_modules/.bin/terser" --format ascii_only=true -c -m --comments false -- all.js
  echo
} >"$here/codemirror.js"
{
  echo "/*! CodeMirror $version, MIT licence */"
  cat "${styles[@]}"
} >"$here/codemirror.css"
cp LICENSE "$here/LICENSE.codemirror"
