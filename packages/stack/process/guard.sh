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

# What ends by INT is the database: it ends when the others have, since they still write into it, or after 4 seconds.
last=''
for entry in $owned; do
  if [ "${entry##*:}" = INT ]; then
    last="$last $entry"
  else
    kill -s "${entry##*:}" "${entry%%:*}" 2>/dev/null
  fi
done
waited=0
while living && [ "$waited" -lt 60 ]; do
  if [ -n "$last" ] && { [ "$alive" = "$last" ] || [ "$waited" -ge 40 ]; }; then
    for entry in $last; do
      kill -s INT "${entry%%:*}" 2>/dev/null
    done
    last=''
  fi
  sleep 0.1 9>&-
  waited=$((waited + 1))
done
living && for entry in $alive; do
  kill -s KILL "${entry%%:*}" 2>/dev/null
done
exit 0
