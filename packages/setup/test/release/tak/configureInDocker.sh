#!/bin/sh
# Starts the five programs of the server in the background; with an argument it stays. Made up for the tests.

[ $# -gt 0 ] || pkill -f 'takserver.*[.](war|jar)'

cd /opt/tak || exit 1
. ./setenv.sh
java -jar "-Xmx${CONFIG_MAX_HEAP}m" -Dspring.profiles.active=config takserver.war &
java -jar "-Xmx${MESSAGING_MAX_HEAP}m" -Dspring.profiles.active=messaging takserver.war &
java -jar "-Xmx${API_MAX_HEAP}m" -Dspring.profiles.active=api -Dkeystore.pkcs12.legacy takserver.war &
java -jar "-Xmx${RETENTION_MAX_HEAP}m" takserver-retention.jar &
java -jar "-Xmx${PLUGIN_MANAGER_MAX_HEAP}m" -Dloader.path=WEB-INF/lib-provided,WEB-INF/lib,WEB-INF/classes,file:lib/ takserver-pm.jar &

[ $# -eq 0 ] || tail -f /dev/null
