# shellcheck shell=bash
# Sourced by release.sh: runs an archive in a bare Debian of its architecture.

# All of it, the Debian included, is in namespaces that the kernel ends with this process, however
# that ends.
prove() { # [ARCHIVE]
  [ "$(id -u)" = 0 ] || fail 'Only root can make a Debian to run the archive in.' 'repeat this with sudo'
  local archive=${1:-} cpu tool seconds=300
  [ -n "$archive" ] || archive=$(compgen -G ".release/holdfast-*-linux-x64.tar.gz" | head -n 1) || fail 'There is no archive in .release.' "make it: ./$HERE/release.sh artifacts"
  case $archive in
    *-linux-x64.tar.gz) cpu=amd64 ;;
    *-linux-arm64.tar.gz) cpu=arm64 ;;
    *) fail "$archive is not named like an archive." 'give one that ends with -linux-x64.tar.gz or -linux-arm64.tar.gz' ;;
  esac
  [ -r "$archive" ] || fail "There is no file $archive." "make it: ./$HERE/release.sh artifacts"
  for tool in mmdebstrap ip unshare setpriv; do command -v "$tool" >/dev/null || fail "$tool is not installed." 'apt-get install mmdebstrap iproute2 util-linux'; done
  [ "$cpu" = "$(dpkg --print-architecture)" ] || { emulate "$cpu" && seconds=1800; }
  setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --fork --kill-child --mount-proc "$HERE/bare-debian.sh" "$cpu" "$seconds" <"$archive"
}

# Lets the kernel start programs of the other architecture with QEMU, unless it does already.
emulate() { # CPU
  local registered=/proc/sys/fs/binfmt_misc name machine qemu
  case $1 in
    arm64) name=qemu-aarch64 machine='\xb7' ;;
    amd64) name=qemu-x86_64 machine='\x3e' ;;
  esac
  mountpoint -q "$registered" || mount -t binfmt_misc binfmt_misc "$registered"
  [ ! -e "$registered/$name" ] || return 0
  qemu=$(command -v "$name-static") || fail "$name-static is not installed." 'apt-get install qemu-user-static'
  # shellcheck disable=SC2064 # name is local
  trap "echo -1 >'$registered/$name'" EXIT
  # F: the interpreter is opened now, so that no root file system needs one.
  printf '%s' ":$name:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$machine\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$qemu:F" >"$registered/register"
}
