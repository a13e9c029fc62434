# bash completion of zipper: source <(zipper completion bash)
_zipper() {
  local word current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  # What follows -- is a program and its arguments: files, and nothing of it is run here.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word != -- ]] || return 0; done
  local command=("${COMP_WORDS[@]:0:COMP_CWORD}")
  case $current in
    --) command+=(-) ;; # it would end the options
    -*) command+=("$current") ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$("${command[@]}" --generate-bash-completion 2>/dev/null)" -- "$current")
}
complete -o bashdefault -o default -F _zipper zipper
