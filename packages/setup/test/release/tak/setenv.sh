#!/bin/sh
# Sets heaps from the memory of the machine unless they are given, and where Java puts its files. Made up for the tests.

export JDK_JAVA_OPTIONS="-Dloader.path=WEB-INF/lib-provided,WEB-INF/lib,WEB-INF/classes,file:lib/ -Djava.io.tmpdir=/opt/tak -Djava.net.preferIPv4Stack=true -DIGNITE_QUIET=true"
export IGNITE_HOME="/opt/tak"
# shellcheck source=/dev/null
[ ! -f /etc/default/takserver ] || . /etc/default/takserver

memory=$(awk '/MemTotal/ { print $2 }' /proc/meminfo)
: "${CONFIG_MAX_HEAP:=$((memory / 35000))}"
: "${API_MAX_HEAP:=$((memory / 6300))}"
: "${MESSAGING_MAX_HEAP:=$((memory / 6300))}"
: "${PLUGIN_MANAGER_MAX_HEAP:=$((memory / 30000))}"
: "${RETENTION_MAX_HEAP:=$((memory / 30000))}"
export CONFIG_MAX_HEAP API_MAX_HEAP MESSAGING_MAX_HEAP PLUGIN_MANAGER_MAX_HEAP RETENTION_MAX_HEAP
