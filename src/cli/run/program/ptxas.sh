#!/bin/sh
# What Triton is given as ptxas by `dgx run`: the emulator runs PTX, so that is the machine code.
case " $* " in *" --version "*) echo "dgx, in place of ptxas: release 13.0, V13.0.0"; exit 0 ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    -o) to=$2; shift ;;
    *.ptx) from=$1 ;;
  esac
  shift
done
exec cp -- "$from" "$to"
