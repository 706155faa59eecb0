#!/bin/sh
# Says what the package system would do: everything that a release installs is in the stand-ins
# already.
echo "apt-get $*"
