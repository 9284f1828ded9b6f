# Prints what bash would complete: complete.sh TOOLS_FOLDER
PATH=$1:$PATH
. "$(dirname "$0")/../../../utils/completion.bash"
ask() { # tool, the words of the line as bash splits it
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _fp4_complete "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  local IFS=
  echo "$1 ${*:2}: ${COMPREPLY[*]}"
}
ask fp4-opt --fp4-fu
ask fp4-runner --compile-to = pi
ask fp4-runner --unw
ask fp4-run --tw
ask fp4-sim run --timel
ask fp4-reduce --reduction-t
ask fp4-lsp-server --lit
