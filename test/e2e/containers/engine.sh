#!/bin/sh
# dockerd in namespaces of its own, with a wire (veth) to the machine that started it. All of it, the directory included,
# is gone when standard input ends, which the kernel sees to when the starting process dies.
# usage: engine.sh DIRECTORY INTERFACE PREFIX   (PREFIX.1 is this side, PREFIX.2 the engine's)
# shellcheck disable=SC2016 # what stands in single quotes is for the shells that it starts
directory=$1 interface=$2 prefix=$3
group=$(basename "$directory")
cd / || exit 1

# Inside: first the mounts and the network, so that the number of this process is one that the
# outside knows. It would write keys and directories to /etc and /opt.
inside='
  for place in etc opt; do
    mkdir -p "$1/$place/new" "$1/$place/work" &&
      mount -t overlay overlay -o "lowerdir=/$place,upperdir=$1/$place/new,workdir=$1/$place/work" "/$place" || exit 1
  done
  mount -t tmpfs tmpfs /run && ip link set lo up || exit 1
  echo $$ >"$1/inside" && exec unshare --pid --fork --kill-child --mount-proc sh -c "$2" sh "$1" "$3"
'
engine='
  dockerd --config-file "$1/daemon.json" --host "unix://$1/engine.sock" --host unix:///run/docker.sock \
    --data-root "$1/data" --exec-root "$1/exec" \
    --pidfile "$1/dockerd.pid" --storage-driver overlay2 --cgroup-parent "/$2" --exec-opt native.cgroupdriver=cgroupfs &
  exec cat
'
exec 3<&0
unshare --mount --net sh -c "$inside" sh "$directory" "$engine" "$group" <&3 &
namespaces=$!

wire() {
  until [ -s "$directory/inside" ]; do kill -0 "$namespaces" && sleep 0.05 || return 1; done
  at() { nsenter --target "$(cat "$directory/inside")" --net ip "$@"; }
  ip link add "$interface" type veth peer name wire netns "$(cat "$directory/inside")" &&
    at address add "$prefix.2/24" dev wire && at link set wire up &&
    for client in 1 11 12 13 14 15 16 17 18 19; do
      ip address add "$prefix.$client/24" dev "$interface" || return 1
    done && ip link set "$interface" up
}
wire && : >"$directory/wired" && cat <&3 >/dev/null

# A frozen process of control groups v1 cannot even be killed.
thaw() { find /sys/fs/cgroup -path "*/$group*" -name freezer.state -exec sh -c 'echo THAWED >"$0"' {} ';'; }
thaw
kill -KILL "$namespaces" 2>/dev/null
wait "$namespaces"
ip link delete "$interface" 2>/dev/null
tries=0
until find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null && rm -rf "$directory"; do
  tries=$((tries + 1)) && [ "$tries" -lt 200 ] || exit 1
  sleep 0.05
done
