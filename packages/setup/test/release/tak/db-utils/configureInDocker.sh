#!/bin/bash
# Starts the database on a directory that no volume holds, and brings its schema up to date. Made up for the tests.

version=15
data=/var/lib/postgresql/$version/data
programs=/usr/lib/postgresql/$version/bin
options='-c max_connections=2100 -c shared_buffers=2560MB'
su - postgres -c "$programs/pg_ctl initdb -D $data"
cp /opt/tak/db-utils/pg_hba.conf $data/pg_hba.conf
su - postgres -c "$programs/pg_ctl -D $data -l $data/postgres.log start -o '$options' --wait"
cd /opt/tak/db-utils || exit 1
./configure.sh
java -jar SchemaManager.jar upgrade
su - postgres -c "$programs/pg_ctl -D $data -l $data/postgres.log restart -o '$options' --wait"
tail -f /dev/null
