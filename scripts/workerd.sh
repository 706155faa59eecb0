#!/bin/sh
# workerd that ends with the process that started it, however that one ends. WORKERD is the program itself.
exec setpriv --pdeathsig KILL -- "$WORKERD" "$@"
