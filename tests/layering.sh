#!/bin/sh
# The dependency arrows of docs/design.md, checked. Run from the repository root.
fail=0
layer() {  # layer NAME ALLOWED...
  name=$1; allowed=" $* "
  for used in $(grep -rhoE '#include "[a-z_]+/' "src/$name" 2>/dev/null | sed 's/.*"//; s#/##' | sort -u); do
    case "$allowed" in *" $used "*) ;; *) echo "src/$name must not include $used/"; fail=1 ;; esac
  done
}
layer base
layer kernels base
layer ops base kernels
layer mixers base ops kernels
layer model base ops mixers kernels
layer automata base
layer tasks base automata text
layer text base
layer figures base embedded
layer compile base automata ops mixers model
layer training base ops kernels model mixers tasks automata
layer experiments base automata compile model mixers ops tasks training
layer python base ops model mixers experiments cli
layer cli base embedded automata figures compile experiments model mixers ops kernels tasks text training
if grep -rnE '#include <(torch|ATen|c10)/' src/base src/kernels src/automata src/tasks src/text src/figures; then
  echo "base/, kernels/, automata/, tasks/, text/ and figures/ are torch-free"; fail=1
fi
exit $fail
