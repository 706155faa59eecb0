#!/bin/sh
# Runs workerd ($WORKERD) so that it ends with its parent process, however that ends.
exec setpriv --pdeathsig KILL -- "$WORKERD" "$@"
