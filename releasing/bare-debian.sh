#!/usr/bin/env bash
# usage: bare-debian.sh CPU SECONDS <ARCHIVE
# Starts an archive as an ordinary user of a minimal Debian, whose network is the loopback alone, and
# runs the connection check for so long. For root, in the namespaces of prove.sh.
set -euo pipefail

# In memory, and seen in this namespace alone.
mount -t tmpfs -o mode=755 bare-debian /mnt
mkdir /mnt/root
mkdir -m 1777 /mnt/tmp
# shellcheck disable=SC2016 # $1 is mmdebstrap's
TMPDIR=/mnt/tmp mmdebstrap --quiet --variant=minbase --mode=root --architectures="$1" --skip=check/qemu --dpkgopt=force-unsafe-io \
  --customize-hook='chroot "$1" useradd --create-home --shell /bin/bash ada' bookworm /mnt/root </dev/null
cat >/mnt/root/home/ada/archive.tar.gz
cat >/mnt/root/home/ada/prove.sh <<'INSIDE'
set -eu
for program in node npm curl; do ! command -v "$program" || { echo "This Debian has $program."; exit 1; }; done
mkdir holdfast
tar -xzf archive.tar.gz -C holdfast --strip-components=1
cd holdfast
./scripts/start.sh --embedded --detach
trap './scripts/stop.sh' EXIT
node_modules/node-linux-*/bin/node dist/prove.js --within "$1" || { tail -n 40 data/logs/core.log; exit 1; }
INSIDE
mount -t proc proc /mnt/root/proc
mount --rbind /dev /mnt/root/dev
# shellcheck disable=SC2016 # $0 is sh's: the seconds
unshare --net sh -c 'ip link set lo up && chroot /mnt/root su - ada -c "bash prove.sh $0"' "$2" </dev/null
