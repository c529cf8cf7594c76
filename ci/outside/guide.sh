# Sourced by the tests here: what a guide says, and engines to say it of.

# block GUIDE HEADING KIND: the lines of ```KIND below "## HEADING".
block() {
  awk -v heading="## $2" -v kind="\`\`\`$3" '
    /^## / { below = $0 == heading }
    /^```/ { inside = below && $0 == kind; next }
    inside' "$1"
}

# one_file EXAMPLES NAME: NAME.c, which includes ddp.c, as one file, as ddp.c is.
one_file() {
  sed -e "/#include \"ddp.c\"/{r $1/ddp.c" -e 'd}' "$1/$2.c"
}
