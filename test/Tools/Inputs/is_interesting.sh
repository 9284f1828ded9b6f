#!/bin/sh
# fp4-reduce asks whether a program is interesting: this one is while it quantizes and verifies. The exit
# code 1 says so.
"$FP4_OPT" "$1" -o /dev/null 2> /dev/null && grep -q 'fp4.quantize' "$1" && exit 1
exit 0
