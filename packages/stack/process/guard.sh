#!/bin/sh
# Holds the lock of a data directory while any process of its stack runs. Reads from standard input
# which processes belong to the stack ("own PID SIGNAL", "free PID"). When that input ends, the
# supervisor is gone: the guard ends the remaining processes within 8 seconds, then releases the
# lock. Exit 75: another process holds the lock. Exit 74: the lock file can't be opened.

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

# INT ends the database, after the processes that write to it have ended or after 4 seconds.
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
