#!/bin/sh
# usage: mpi_fabric_test.sh RANKS PROGRAM
set -eu
exec mpirun -n "$1" "$2"
