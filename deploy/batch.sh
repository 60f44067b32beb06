#!/bin/sh
# A batch on one virtual machine, started again until it is done: sh deploy/batch.sh crawl/ clean --do clean --to parquet
# The first two words are the input and the output, the others options of prunus batch. PRUNUS is the program.
set -u
PRUNUS="${PRUNUS:-/opt/prunus/bin/prunus}"
TRIES="${TRIES:-20}"
if [ "$#" -lt 3 ]; then
    echo "usage: batch.sh INPUT OUT OPTIONS... (as --do clean)" >&2
    exit 2
fi
input=$1 output=$2
shift 2
try=1
while :; do
    "$PRUNUS" batch "$input" -o "$output" "$@"
    code=$?
    case $code in
        0 | 2 | 4 | 5 | 130) exit "$code" ;;  # done, or what a further try does not change
    esac
    if [ "$try" -ge "$TRIES" ]; then
        exit "$code"
    fi
    echo "batch.sh: ended with code $code; try $((try + 1)) of $TRIES" >&2
    try=$((try + 1))
    sleep "${PAUSE:-10}"
done
