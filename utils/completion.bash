# Completes the options of our tools in bash: source utils/completion.bash
# The tools are asked for their help, so that this file need not know one option.

_fp4_complete() {
  local tool=$1 current=$2 before=$3 words
  # Bash takes '=' for a word: "--emit=ptx" is "--emit", "=", "ptx".
  [[ $current == = ]] && current=
  [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
  case $before in
  --compile-to | --emit | --check | --policy | --device | --target)
    words=$(_fp4_values "$before") ;;
  *)
    [[ $current == -* ]] || return 0 # bash goes on with names of files
    words=$("$tool" --help-all 2> /dev/null | grep -oE '^ +(-[a-zA-Z],)?--[a-z0-9-]+' | grep -oE -- '--.*')
    ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

_fp4_values() {
  case $1 in
  --compile-to) echo fused planned tiles roles pipelined nvvm ptx cubin host ;;
  --emit) echo mlir ptx cubin so ;;
  --check) echo default strict off ;;
  --policy) echo eager lazy random delay ;;
  --device) echo auto sim cuda ;;
  --target) echo sm_90a sm_100a sm_103a sm_107a sm_110a sm_120a sm_121a ;;
  esac
}

complete -o default -F _fp4_complete fp4-opt fp4-runner fp4-run fp4-sim fp4-reduce fp4-lsp-server
