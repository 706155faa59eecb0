#!/bin/sh
# Holds the lock of one data directory for as long as anything of its stack runs. On standard input it is told which
# processes belong to the stack ("own PID SIGNAL", "free PID"). When that input ends, the supervisor is gone: it ends
# what is left within 8 seconds, and only then gives the lock back.
# Exit 75: somebody else holds the lock. Exit 74: the lock file cannot be opened.

trap '' INT TERM HUP
( : >>"$1" ) 2>/dev/null || exit 74
exec 9>>"$1"
flock -n 9 || exit 75
echo locked

owned=''
while read -r word pid signal; do
  kept=''
  for entry in $owned; do
    [ "${entry%%:*}" = "$pid" ] || kept="$kept $entry"
  done
  [ "$word" = own ] && kept="$kept $pid:$signal"
  owned=$kept
done

living() {
  alive=''
  for entry in $owned; do
    kill -0 "${entry%%:*}" 2>/dev/null && alive="$alive $entry"
  done
  [ -n "$alive" ]
}

for entry in $owned; do
  kill -s "${entry##*:}" "${entry%%:*}" 2>/dev/null
done
waited=0
while living && [ "$waited" -lt 60 ]; do
  sleep 0.1 9>&-
  waited=$((waited + 1))
done
living && for entry in $alive; do
  kill -s KILL "${entry%%:*}" 2>/dev/null
done
exit 0
