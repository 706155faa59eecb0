#!/bin/bash
# Java, as far as a made-up release needs it: run by the Node that our layer brings.
exec -a java /opt/holdfast/bin/node --no-warnings /opt/stand-in/java.mjs "$@"
