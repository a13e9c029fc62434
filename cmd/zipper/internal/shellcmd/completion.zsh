#compdef zipper
# zsh completion of zipper: zipper completion zsh > "${fpath[1]}/_zipper"
_zipper() {
  local -a command values
  # What follows -- is a program and its arguments: files, and nothing of it is run here.
  if (( ${words[(i)--]} < CURRENT )); then _files; return; fi
  command=("${(@)words[1,CURRENT-1]}")
  case ${words[CURRENT]} in
    --) command+=(-) ;; # it would end the options
    -*) command+=("${words[CURRENT]}") ;;
  esac
  values=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 "${command[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n ${values[1]} ]]; then _describe 'zipper' values; else _files; fi
}
if [[ ${funcstack[1]} == _zipper ]]; then _zipper "$@"; else compdef _zipper zipper; fi
