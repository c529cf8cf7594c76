#!/bin/sh
# mpirun.sh RANKS BINARY: runs a test under mpirun.
exec mpirun -n "$1" "$2"
