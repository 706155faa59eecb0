#!/bin/bash
# Makes the role and the database of the server, with the password of its configuration. Made up for the tests.

config=/opt/tak/CoreConfig.xml
[ -f $config ] || config=/opt/tak/CoreConfig.example.xml
password=$(grep -m1 '<connection' $config | sed 's/.*password="\([^"]*\)".*/\1/')
su - postgres -c "psql -c \"CREATE ROLE martiuser LOGIN ENCRYPTED PASSWORD '$password' SUPERUSER INHERIT CREATEDB NOCREATEROLE\""
su - postgres -c 'createdb --owner=martiuser cot'
