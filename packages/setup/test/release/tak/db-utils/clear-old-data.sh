#!/bin/bash
# Runs the file of the same name. Made up for the tests.
psql -U martiuser -d cot -f "$(dirname "$0")/clear-old-data.sql"
